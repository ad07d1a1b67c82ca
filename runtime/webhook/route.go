// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// share is the part of a server that the backends with one prefix have.
type share struct {
	prefix   string
	backends []*backend // in the order of Add; guarded by Server.mu, and never changed in place

	mu     sync.Mutex
	series map[string]bool // paths that have series; guarded by mu
}

// backend is a Backend that is served.
type backend struct {
	Backend

	*share

	controller string
	order      int // of Add
	gate       *gate
	accounts   []Account // are charged for the memory of requests

	swaps           sync.Mutex
	current, former *Routes   // former is what current has replaced; guarded by swaps
	replaced        time.Time // when it did; guarded by swaps
}

// grace is how long the API server may still send requests that only the former routes select. The configurations follow within seconds.
const grace = 30 * time.Second

// routes returns the routes of the backend and, during the grace period after a swap, the former ones. Both may be nil.
func (b *backend) routes(now time.Time) (current, former *Routes) {
	b.swaps.Lock()
	defer b.swaps.Unlock()
	routes := b.Routes()
	if routes == nil { // nothing can be judged, which differs from a module that does not select a request
		return nil, nil
	}
	if routes != b.current {
		b.current, b.former, b.replaced = routes, b.current, now
	}
	if now.Sub(b.replaced) > grace {
		b.former = nil
	}
	return b.current, b.former
}

// target is the meaning of a URL: a webhook, or a backend with conversions.
type target struct {
	*backend

	routes, former *Routes
	path           string // without the prefix
	conversion     bool
}

// find returns the backend that serves the webhook of a path, or all backends that serve conversions there.
func (s *Server) find(path string) (found []target) {
	for end := range len(path) {
		if end > 0 && path[end] != '/' {
			continue
		}
		prefix, rest := path[:end], path[end:]
		for _, b := range s.with(prefix) {
			routes, former := b.routes(time.Now())
			to := target{b, routes, former, rest, rest == ConvertPath && routes != nil && len(routes.Conversions) > 0}
			if to.conversion {
				found = append(found, to)
			} else if len(found) == 0 && (routes.webhook(rest) != nil || former.webhook(rest) != nil) {
				return []target{to}
			}
		}
		if len(found) > 0 || strings.Count(prefix, "/") == 2 {
			return found
		}
	}
	return nil
}

// webhook returns the webhook with a path, or nil.
func (r *Routes) webhook(path string) *abi.Webhook {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Webhooks, func(w abi.Webhook) bool { return w.Path == path && len(w.Rules) > 0 })
	if i < 0 {
		return nil
	}
	return &r.Webhooks[i]
}

// with returns the backends that have a prefix, in the order of Add.
func (s *Server) with(prefix string) []*backend {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if of := s.shares[prefix]; of != nil {
		return of.backends
	}
	return nil
}

// paths returns the URLs that the backends with a prefix may serve.
func (s *Server) paths(prefix string) map[string]bool {
	paths := map[string]bool{}
	for _, b := range s.with(prefix) {
		if routes := b.Routes(); routes != nil {
			paths[prefix+ConvertPath] = true
			for i := range routes.Webhooks {
				paths[prefix+routes.Webhooks[i].Path] = true
			}
		}
	}
	return paths
}
