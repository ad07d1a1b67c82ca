// SPDX-License-Identifier: Apache-2.0

// Package ocitest is only for tests. It has a registry in the process, with injected faults.
package ocitest

import (
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Layer handles requests before they reach a registry.
type Layer func(w http.ResponseWriter, req *http.Request, next http.Handler)

// Registry is the registry of a test, and stops at its end.
type Registry struct {
	// Host is the host in references.
	Host string

	server   *httptest.Server
	mu       sync.Mutex
	layers   []Layer  // the outermost first; guarded by mu
	requests []string // guarded by mu
	next     http.Handler
}

// New starts a registry with TLS.
func New(t testing.TB, layers ...Layer) *Registry { return start(t, true, layers) }

// NewPlain starts a registry with plain HTTP.
func NewPlain(t testing.TB, layers ...Layer) *Registry { return start(t, false, layers) }

func start(t testing.TB, tls bool, layers []Layer) *Registry {
	t.Helper()
	quiet := log.New(io.Discard, "", 0)
	r := &Registry{layers: layers, next: registry.New(registry.Logger(quiet), registry.WithReferrersSupport(true))}
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.ErrorLog = quiet
	if tls {
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	t.Cleanup(r.server.Close)
	u, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = u.Host
	return r
}

// Transport returns a transport that trusts the registry's certificate.
func (r *Registry) Transport() *http.Transport {
	return r.server.Client().Transport.(*http.Transport).Clone()
}

// Certificate returns the certificate of the registry, in DER.
func (r *Registry) Certificate() []byte { return r.server.Certificate().Raw }

// Use replaces the layers of the registry.
func (r *Registry) Use(layers ...Layer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.layers = layers
}

// Requests returns the requests since the last call, as "GET /v2/...".
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.requests
	r.requests = nil
	return list
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, req.Method+" "+req.URL.Path)
	layers := slices.Clone(r.layers)
	r.mu.Unlock()
	chain(layers, r.next).ServeHTTP(w, req)
}

func chain(layers []Layer, end http.Handler) http.Handler {
	if len(layers) == 0 {
		return end
	}
	rest := chain(layers[1:], end)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { layers[0](w, req, rest) })
}

// Basic requires a user and a password.
func Basic(user, password string) Layer {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if u, p, _ := req.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			Fail(w, http.StatusUnauthorized, "UNAUTHORIZED")
			return
		}
		next.ServeHTTP(w, req)
	}
}

// Bearer requires a token, which the registry's own token service issues for a user and a password.
func Bearer(user, password string) Layer {
	const token = "the-token"
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case req.URL.Path == "/token":
			if u, p, _ := req.BasicAuth(); u != user || p != password {
				Fail(w, http.StatusUnauthorized, "UNAUTHORIZED")
				return
			}
			_, _ = io.WriteString(w, `{"token": "`+token+`"}`)
		case req.Header.Get("Authorization") != "Bearer "+token:
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+req.Host+`/token",service="test"`)
			Fail(w, http.StatusUnauthorized, "UNAUTHORIZED")
		default:
			next.ServeHTTP(w, req)
		}
	}
}

// On answers requests with a method (if "", any) and a path that contains a part.
func On(method, part string, answer Layer) Layer {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if (method == "" || method == req.Method) && strings.Contains(req.URL.Path, part) {
			answer(w, req, next)
			return
		}
		next.ServeHTTP(w, req)
	}
}

// Status answers with a status and a code of the specification, and with headers in pairs.
func Status(status int, code string, headers ...string) Layer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		Fail(w, status, code)
	}
}

// Times applies a layer to the first n requests that reach it.
func Times(n int, layer Layer) Layer {
	var mu sync.Mutex
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		mu.Lock()
		n--
		left := n >= 0
		mu.Unlock()
		if left {
			layer(w, req, next)
			return
		}
		next.ServeHTTP(w, req)
	}
}

// Change changes the body of answers with status 200. Headers stay.
func Change(change func([]byte) []byte) Layer {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, req)
		body := rec.Body.Bytes()
		if rec.Code == http.StatusOK {
			body = change(slices.Clone(body))
		}
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(body)
	}
}

// Fail writes an error in the format of registries.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"errors": [{"code": "`+code+`", "message": "of the test"}]}`)
}
