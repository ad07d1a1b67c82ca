// SPDX-License-Identifier: Apache-2.0

// Package healthz has the health checks that programs register. In a module
// they are not called, because the host answers probes itself.
package healthz

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
)

// Checker checks a component, and returns an error if it is unhealthy.
type Checker func(req *http.Request) error

// Ping always succeeds.
var Ping Checker = func(*http.Request) error { return nil }

// Handler serves the result of all checks, or of the check named by the last
// part of the path.
type Handler struct {
	Checks map[string]Checker
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(resp http.ResponseWriter, req *http.Request) {
	if one, ok := h.Checks[path.Base(req.URL.Path)]; ok {
		CheckHandler{one}.ServeHTTP(resp, req)
		return
	}
	CheckHandler{func(req *http.Request) error {
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(h.Checks)) {
			if err := h.Checks[name](req); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		return errors.Join(errs...)
	}}.ServeHTTP(resp, req)
}

// CheckHandler serves the result of one check.
type CheckHandler struct {
	Checker
}

// ServeHTTP implements http.Handler.
func (h CheckHandler) ServeHTTP(resp http.ResponseWriter, req *http.Request) {
	if err := h.Checker(req); err != nil {
		http.Error(resp, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = resp.Write([]byte("ok"))
}
