// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// maxBody bounds the body of a request: some hundred thousand names.
const maxBody = 16 << 20

// maxModule bounds the size of a module in a request; the process has a limit of its own.
const maxModule = 128 << 20

// Server serves a Service on a socket.
type Server struct {
	path    string
	service Service
	log     *slog.Logger
}

// New returns a Server. It opens nothing; Run does.
func New(path string, service Service, log *slog.Logger) *Server {
	return &Server{path: path, service: service, log: log}
}

// Run serves until ctx ends, and then removes the socket. It replaces the socket of a
// process that has ended; the socket of a running process is an error.
func (s *Server) Run(ctx context.Context) error {
	l, err := listen(ctx, s.path)
	if err != nil {
		return fmt.Errorf("admin socket[%s]: %w", s.path, err)
	}
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), ConnContext: withPeer}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin socket[%s]: %w", s.path, err)
	}
	return nil
}

// listen opens the socket for its owner only.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := makeDir(path); err != nil {
		return nil, err
	}
	if answers(ctx, path) {
		return nil, errors.New("in use by another process: choose another one with --socket")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return ownListener{l}, nil
}

// answers reports whether a process listens on the socket.
func answers(ctx context.Context, path string) bool {
	conn, err := dial(ctx, &net.Dialer{Timeout: time.Second}, path)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Handler returns the handler of the endpoint. It refuses a request with a part that it does not know: the client is newer, and asks for
// something that the process would not do. So a client should send a new part only if the user asks for it. Clients ignore parts of an
// answer that they do not know.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, serve http.HandlerFunc, keys ...string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			for key := range r.URL.Query() {
				if !slices.Contains(keys, key) {
					answer(w, nil, unknownPart(s.service.Status().Version, strconv.Quote(key)))
					return
				}
			}
			serve(w, r)
		})
	}
	handle("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.service.Status(), nil) })
	handle("GET /v1/explain", s.explain, "controller", "kind", "namespace", "name")
	handle("GET /v1/top", s.top, "objects")
	handle("GET /v1/controllers/{name}/logs", s.logs, "object", "since", "tail", "follow")
	handle("GET /v1/controllers/{name}/history", s.history)
	handle("POST /v1/controllers/{name}/log-level", command(s, s.logLevel))
	handle("POST /v1/controllers/{name}/trigger", command(s, s.trigger))
	handle("POST /v1/controllers/{name}/swap", s.swap, queryForce, queryCanary, queryNamespace, querySelector, queryTime, queryProof, queryFrom)
	handle("POST /v1/controllers/{name}/promote", s.canary(s.service.Promote))
	handle("POST /v1/controllers/{name}/abort", s.canary(s.service.Abort))
	handle("POST /v1/controllers/{name}/shadow", s.shadow, "for", "count", "all", queryProof)
	handle("POST /v1/controllers/{name}/rollback", command(s, s.rollback))
	handle("POST /v1/controllers/{name}/config", command(s, s.config))
	handle("POST /v1/controllers/{name}/release", command(s, s.release))
	handle("POST /v1/controllers/{name}/pause", s.pause(true))
	handle("POST /v1/controllers/{name}/resume", s.pause(false))
	return mux
}

// command serves a command to a controller with a JSON body.
func command[Req, Res any](s *Server, do func(ctx context.Context, controller string, req Req) (Res, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req Req
		if err := s.read(w, r, &req); err != nil {
			answer(w, nil, err)
			return
		}
		res, err := do(r.Context(), r.PathValue("name"), req)
		answer(w, res, err)
	}
}

// read decodes the JSON body of a request.
func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) error {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		return nil
	}
	if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return unknownPart(s.service.Status().Version, field)
	}
	return fmt.Errorf("body: %w", err)
}

func (s *Server) trigger(ctx context.Context, controller string, req triggerRequest) (res Steered, err error) {
	keys, err := parseKeys(req.Objects)
	if err == nil {
		res, err = s.service.Trigger(ctx, controller, keys, req.Force)
	}
	return res, err
}

func (s *Server) swap(w http.ResponseWriter, r *http.Request) {
	wasm, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxModule))
	if err != nil {
		answer(w, nil, fmt.Errorf("body: %w", err))
		return
	}
	options, err := swapOptions(r.URL.Query())
	if err != nil {
		answer(w, nil, err)
		return
	}
	res, err := s.service.Swap(r.Context(), r.PathValue("name"), wasm, options)
	answer(w, res, err)
}

// canary serves promote and abort.
func (s *Server) canary(end func(ctx context.Context, controller string) (Swapped, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		res, err := end(r.Context(), r.PathValue("name"))
		answer(w, res, err)
	}
}

func (s *Server) rollback(ctx context.Context, controller string, req rollbackRequest) (Swapped, error) {
	return s.service.Rollback(ctx, controller, req.To)
}

func (s *Server) config(ctx context.Context, controller string, req configRequest) (configResponse, error) {
	number, err := s.service.Configure(ctx, controller, req.Change)
	return configResponse{number}, err
}

func (s *Server) pause(paused bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req pauseRequest
		if err := s.read(w, r, &req); err != nil && !errors.Is(err, io.EOF) {
			answer(w, nil, err)
			return
		}
		if req.Object == "" {
			res, err := s.service.Pause(r.Context(), r.PathValue("name"), paused)
			answer(w, res, err)
			return
		}
		key, err := parseKey(req.Object)
		if err == nil {
			err = s.service.PauseObject(r.Context(), r.PathValue("name"), key, paused)
		}
		answer(w, struct{}{}, err)
	}
}

// parseKeys parses the names of objects.
func parseKeys(names []string) (keys []abi.Key, err error) {
	keys = make([]abi.Key, len(names))
	for i, name := range names {
		if keys[i], err = parseKey(name); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// parseKey parses "namespace/name", or "name".
func parseKey(text string) (abi.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "", text
	}
	if name == "" || strings.Contains(name, "/") {
		return abi.Key{}, fmt.Errorf("object %q: want namespace/name, or name for a cluster-scoped kind", text)
	}
	return abi.Key{Namespace: namespace, Name: name}, nil
}

// answer writes v, or err with its status code.
func answer(w http.ResponseWriter, v any, err error) {
	code := http.StatusOK
	if err != nil {
		v, code = errorResponse{err.Error(), ClassOf(err)}, http.StatusBadRequest
		if errors.Is(err, ErrUnknown) {
			code = http.StatusNotFound
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
}
