// SPDX-License-Identifier: Apache-2.0

// Package health serves the liveness and readiness of the process, in kube-apiserver's format: /livez and /readyz for all checks, /livez/NAME
// for one, ?verbose to list all and ?exclude=NAME to exclude one.
//
//	live := health.New("livez")
//	live.Add(health.Check{Name: "watches", Do: watching})
//	live.Handle(mux)
//
// A check only reads recorded state. It must not wait for anything, so that it answers even if every guest hangs and every worker is busy.
package health

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Check is a single health check.
type Check struct {
	// Name is the name of the check in paths: letters, digits, "-" and ".".
	Name string
	// Do returns the problem, or nil. It is called concurrently, and must not block.
	Do func() error
}

// Ping is the check that the process answers at all.
var Ping = Check{Name: "ping", Do: func() error { return nil }}

// Checks are the checks of one path. It is safe for concurrent use.
type Checks struct {
	path string

	mu   sync.Mutex
	list []*Check // guarded by mu; in the order of the response
}

// New returns the checks of a path such as "livez", with Ping as the first.
func New(path string) *Checks { return &Checks{path: path, list: []*Check{&Ping}} }

// Add adds a check, and returns a function that removes it.
func (c *Checks) Add(check Check) (remove func()) {
	added := &check
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, added)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.list = slices.DeleteFunc(slices.Clone(c.list), func(other *Check) bool { return other == added })
	}
}

// checks returns the current list, which is never modified.
func (c *Checks) checks() []*Check {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.list)
}

// Handle serves the checks on mux.
func (c *Checks) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /"+c.path, c.serveAll)
	mux.HandleFunc("GET /"+c.path+"/{name}", c.serveOne)
}

// serveAll serves the result of all checks.
func (c *Checks) serveAll(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	excluded := map[string]bool{} // by name: whether the check exists
	for _, name := range query["exclude"] {
		excluded[name] = false
	}
	var text strings.Builder
	failed := false
	for _, check := range c.checks() {
		if _, ok := excluded[check.Name]; ok {
			excluded[check.Name] = true
			fmt.Fprintf(&text, "[+]%s excluded: ok\n", check.Name)
			continue
		}
		if check.Do() == nil {
			fmt.Fprintf(&text, "[+]%s ok\n", check.Name)
			continue
		}
		failed = true
		fmt.Fprintf(&text, "[-]%s failed: reason withheld\n", check.Name)
	}
	text.WriteString(warning(excluded))
	_, verbose := query["verbose"]
	switch {
	case failed:
		fmt.Fprintf(&text, "%s check failed\n", c.path)
		answer(w, http.StatusInternalServerError, text.String())
	case verbose:
		fmt.Fprintf(&text, "%s check passed\n", c.path)
		answer(w, http.StatusOK, text.String())
	default:
		answer(w, http.StatusOK, "ok")
	}
}

// warning lists excluded checks that do not exist.
func warning(excluded map[string]bool) string {
	var unknown []string
	for name, known := range excluded {
		if !known {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	slices.Sort(unknown)
	return fmt.Sprintf("warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ", "))
}

// serveOne serves the result of one check, including its error.
func (c *Checks) serveOne(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	list := c.checks()
	i := slices.IndexFunc(list, func(check *Check) bool { return check.Name == name })
	if i < 0 {
		answer(w, http.StatusNotFound, fmt.Sprintf("%s has no check of this name; ?verbose lists them\n", c.path))
		return
	}
	if err := list[i].Do(); err != nil {
		answer(w, http.StatusInternalServerError, fmt.Sprintf("internal server error: %v\n", err))
		return
	}
	answer(w, http.StatusOK, "ok")
}

func answer(w http.ResponseWriter, code int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache, no-store, must-revalidate")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client may have disconnected
}
