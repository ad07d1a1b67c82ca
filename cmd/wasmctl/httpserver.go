package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// What bounds a connection of the HTTP addresses: whoever asks is not known.
const (
	httpHeaderTimeout = 10 * time.Second
	httpWriteTimeout  = time.Minute // a profile may take longer: see --pprof
	httpIdleTimeout   = 2 * time.Minute
	httpMaxHeader     = 64 << 10 // bytes
	httpStopTimeout   = 2 * time.Second
)

// httpOptions are the flags of what the process shows over HTTP.
type httpOptions struct {
	metrics, health string // addresses; "", "0" and "none" are none
	pprof           bool
}

func (o *httpOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.metrics, "metrics-address", "", `address to serve /metrics at, for example :8080; "none" for none (default: none)`)
	f.StringVar(&o.health, "health-address", "", `address to serve /livez and /readyz at, for example :8081; "none" for none (default: none). It may be that of --metrics-address`)
	f.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof/ at --metrics-address too: it shows what is in memory, so let nobody else reach that address")
}

func (o *httpOptions) validate() error {
	var errs []error
	for _, flag := range []struct{ name, address string }{{"metrics", o.metrics}, {"health", o.health}} {
		if !isAddress(flag.address) {
			continue
		}
		if _, _, err := net.SplitHostPort(flag.address); err != nil {
			errs = append(errs, fmt.Errorf(`--%s-address %q: want host:port, :port, or "none"`, flag.name, flag.address))
		}
	}
	if o.pprof && !isAddress(o.metrics) {
		errs = append(errs, errors.New("--pprof needs --metrics-address, where it is served"))
	}
	return errors.Join(errs...)
}

func isAddress(s string) bool { return !slices.Contains([]string{"", "0", "none"}, s) }

// httpServer serves at one address.
type httpServer struct {
	server   http.Server
	mux      *http.ServeMux
	listener net.Listener
	paths    []string // for the log
}

// httpServers are those of a process, by the address that was asked for.
type httpServers struct {
	log  *slog.Logger
	list map[string]*httpServer
}

// at returns the server of an address, where path is served from now on.
func (h *httpServers) at(ctx context.Context, flag, address, path string) (*http.ServeMux, error) {
	s := h.list[address]
	if s == nil {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, withCode(exitListen, fmt.Errorf("%s %q: cannot listen: %w; choose another address, or none", flag, address, err))
		}
		s = &httpServer{mux: http.NewServeMux(), listener: l}
		s.server = http.Server{
			Handler: s.mux, ReadHeaderTimeout: httpHeaderTimeout, WriteTimeout: httpWriteTimeout, IdleTimeout: httpIdleTimeout, MaxHeaderBytes: httpMaxHeader,
			ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
		}
		h.list[address] = s
	}
	s.paths = append(s.paths, path)
	return s.mux, nil
}

// run serves until stop is called, which returns when nothing is served any
// more.
func (h *httpServers) run() (stop func()) {
	var wg sync.WaitGroup
	for _, s := range h.list {
		h.log.Info("serving", "address", s.listener.Addr().String(), "paths", strings.Join(s.paths, " "))
		wg.Go(func() {
			if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				h.log.Error("does not serve any more", "address", s.listener.Addr().String(), "error", err.Error())
			}
		})
	}
	return func() {
		for _, s := range h.list {
			wg.Go(s.stop)
		}
		wg.Wait()
	}
}

// stop lets answers that are on their way be written, for a while.
func (s *httpServer) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), httpStopTimeout)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // it has no more to say than Shutdown
	}
}

// close gives the addresses back where nothing was served.
func (h *httpServers) close() {
	for _, s := range h.list {
		_ = s.listener.Close() // it was opened for nothing
	}
}

// servePprof serves what --pprof asks for. A profile takes as long as it is
// asked to.
func servePprof(mux *http.ServeMux) {
	unbounded := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // else it is cut off, and says so
			h(w, r)
		}
	}
	mux.HandleFunc("/debug/pprof/", unbounded(pprof.Index))
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", unbounded(pprof.Profile))
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", unbounded(pprof.Trace))
}
