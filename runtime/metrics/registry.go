// SPDX-License-Identifier: Apache-2.0

// Package metrics exports this process's metrics to Prometheus: those of controller-runtime and client-go under their own names and labels,
// so that existing dashboards and alerts work, and those that only this process has.
//
// Frequent events are counted in a Controller with atomic additions. Everything else is read from its owner at a scrape (Stats, Process),
// so that metrics cost next to nothing without scrapes. The number of series is bounded: no label contains the name of an object, and
// watches are grouped by resource.
package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is the maximum number of concurrent scrapes.
const maxScrapes = 4

// Config configures a Registry. The zero value works.
type Config struct {
	// Version is the version of the program.
	Version string
	// Process, if not nil, is called at each scrape, possibly concurrently.
	Process func() Process
	// Others are further collectors to export.
	Others []prometheus.Collector
	// Logger logs failed scrapes. If nil, nothing is logged.
	Logger *slog.Logger
}

// Registry holds the metrics of one process. It is safe for concurrent use.
type Registry struct {
	cfg         Config
	basic, full *prometheus.Registry

	mu          sync.Mutex
	controllers map[string]*Controller // guarded by mu
}

// New returns a Registry without controllers. The first call also makes client-go count the requests of the process, which all Registries
// export.
func New(cfg Config) *Registry {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	r := &Registry{cfg: cfg, basic: prometheus.NewRegistry(), full: prometheus.NewRegistry(), controllers: map[string]*Controller{}}
	for registry, full := range map[*prometheus.Registry]bool{r.basic: false, r.full: true} {
		registry.MustRegister(&collector{r, full}, &customs{r}, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		registry.MustRegister(slices.Concat(countRequests().collectors(full), cfg.Others)...)
		if full {
			registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
		} else {
			registry.MustRegister(collectors.NewGoCollector())
		}
	}
	return r
}

// ErrNameTaken is returned by Add if there is already a controller with that name.
var ErrNameTaken = errors.New("metrics: another controller has this name")

// Add exports the series of a controller. source is called at each scrape, possibly concurrently; it must not block. A Controller may be
// added only once.
func (r *Registry) Add(name string, c *Controller, source func() Stats) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.controllers[name] != nil {
		return ErrNameTaken
	}
	c.name, c.source = name, source
	r.controllers[name] = c
	return nil
}

// Controller returns an exported controller, or nil.
func (r *Registry) Controller(name string) *Controller {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.controllers[name]
}

// Remove removes the series of a controller. A second call has no effect.
func (r *Registry) Remove(c *Controller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.controllers[c.name] == c {
		delete(r.controllers, c.name)
	}
}

// list returns the controllers, sorted by name.
func (r *Registry) list() []*Controller {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.controllers), func(a, b *Controller) int { return strings.Compare(a.name, b.name) })
}

// Handler serves scrapes, in the text format or, if requested, in OpenMetrics with exemplars. With the parameter
// detail=full, a scrape has all metrics with all buckets, also those that are zero.
func (r *Registry) Handler() http.Handler {
	options := promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes, ErrorLog: errorLog{r.cfg.Logger}}
	basic, full := promhttp.HandlerFor(r.basic, options), promhttp.HandlerFor(r.full, options)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch detail := req.URL.Query().Get("detail"); detail {
		case "", "basic":
			basic.ServeHTTP(w, req)
		case "full":
			full.ServeHTTP(w, req)
		default:
			http.Error(w, fmt.Sprintf("detail=%q: want basic or full", detail), http.StatusBadRequest)
		}
	})
}

// errorLog implements promhttp.Logger.
type errorLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l errorLog) Println(v ...any) {
	var b strings.Builder
	for _, part := range v {
		if err, ok := part.(error); ok {
			b.WriteString(err.Error())
		}
	}
	l.log.Warn("metrics could not be gathered", "error", b.String())
}
