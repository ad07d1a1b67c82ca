// SPDX-License-Identifier: Apache-2.0

// Package httpserver serves metrics, probes and profiles of a process over HTTP.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Limits of a connection. Clients are not authenticated.
const (
	headerTimeout = 10 * time.Second
	writeTimeout  = time.Minute // a profile may take longer: see --pprof
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10 // bytes
	stopTimeout   = 2 * time.Second
)

// server serves at one address.
type server struct {
	http.Server

	mux      *http.ServeMux
	listener net.Listener
	paths    []string // for the log
}

// Servers are the HTTP servers of a process, by the requested address.
type Servers struct {
	log             *slog.Logger
	list            map[string]*server
	metrics, health *http.ServeMux // nil if not served
}

// Listen opens the addresses of the flags early, so that probes get answers as soon as possible.
// The error matches failure.Listen.
func Listen(ctx context.Context, o *flags.HTTP, log *slog.Logger) (_ *Servers, err error) {
	h := &Servers{log: log, list: map[string]*server{}}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	if flags.IsAddress(o.Metrics) {
		if h.metrics, err = h.at(ctx, "--metrics-address", o.Metrics, "/metrics"); err != nil {
			return nil, err
		}
		if o.Pprof {
			servePprof(h.metrics)
			h.list[o.Metrics].paths = append(h.list[o.Metrics].paths, "/debug/pprof/")
		}
	}
	if flags.IsAddress(o.Health) {
		if h.health, err = h.at(ctx, "--health-address", o.Health, "/livez /readyz"); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Serve serves the state of a Runtime until stop is called, which returns after all servers have
// stopped.
func (h *Servers) Serve(rt *wasmctl.Runtime) (stop func()) {
	if h.metrics != nil {
		h.metrics.Handle("GET /metrics", rt.Metrics())
	}
	if h.health != nil {
		rt.HandleHealth(h.health)
	}
	var wg sync.WaitGroup
	for _, s := range h.list {
		h.log.Info("serving", "address", s.listener.Addr().String(), "paths", strings.Join(s.paths, " "))
		wg.Go(func() {
			if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				h.log.Error("HTTP server stopped", "address", s.listener.Addr().String(), "error", err.Error())
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

// at returns the server of an address, which from now on also serves path.
func (h *Servers) at(ctx context.Context, flag, address, path string) (*http.ServeMux, error) {
	s := h.list[address]
	if s == nil {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, failure.Listen.Wrap(fmt.Errorf("%s %q: cannot listen: %w; choose another address, or none", flag, address, err))
		}
		s = &server{mux: http.NewServeMux(), listener: l}
		s.Server = http.Server{
			Handler: s.mux, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
		}
		h.list[address] = s
	}
	s.paths = append(s.paths, path)
	return s.mux, nil
}

// stop gives responses in progress some time to finish.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close() // its error adds nothing to that of Shutdown
	}
}

// Close releases the addresses if nothing was served.
func (h *Servers) Close() {
	for _, s := range h.list {
		_ = s.listener.Close() // it was never used
	}
}

// servePprof serves the profiles of --pprof. The request determines the duration of a profile.
func servePprof(mux *http.ServeMux) {
	unbounded := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // otherwise the profile would be cut off with an error
			h(w, r)
		}
	}
	mux.HandleFunc("/debug/pprof/", unbounded(pprof.Index))
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", unbounded(pprof.Profile))
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", unbounded(pprof.Trace))
}
