// Package metrics is what Prometheus can ask this process for: controller-runtime's
// and client-go's metrics under their own names and labels, so that dashboards
// and alerts that are made for them work, and those of what only this process
// has.
//
// What happens often is counted in a Controller, by atomic additions; everything
// else is read from its owner when Prometheus asks (Stats, Process), so that a
// process that nobody scrapes pays next to nothing. The number of series is
// bounded: no label has the name of an object, and watches are by resource.
package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes bounds how many scrapes are answered at a time.
const maxScrapes = 4

// Config says what a Registry tells of the process. The zero value works.
type Config struct {
	// Version is that of the program.
	Version string
	// Process, if not nil, is asked at each scrape, by several goroutines at once.
	Process func() Process
	// Logger is told why a scrape could not be answered; nil drops it.
	Logger *slog.Logger
}

// Registry has the metrics of one process. It is safe for concurrent use.
type Registry struct {
	cfg      Config
	registry *prometheus.Registry

	mu          sync.Mutex
	controllers map[string]*Controller // guarded by mu
}

// New returns a Registry without controllers. From the first on, client-go
// counts the requests of the process; all Registries show these.
func New(cfg Config) *Registry {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{cfg: cfg, registry: prometheus.NewRegistry(), controllers: map[string]*Controller{}}
	r.registry.MustRegister(
		&collector{r}, countRequests(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
	)
	return r
}

// ErrNameTaken is Add's error where a controller of that name is there.
var ErrNameTaken = errors.New("metrics: another controller has this name")

// Add makes the series of a controller appear. source is asked at each scrape,
// by several goroutines at once; it must not block. A Controller is added once.
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

// Controller returns a controller that is shown, or nil.
func (r *Registry) Controller(name string) *Controller {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.controllers[name]
}

// Remove makes the series of a controller go. What it still counts is not
// shown. A second time does nothing.
func (r *Registry) Remove(c *Controller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.controllers[c.name] == c {
		delete(r.controllers, c.name)
	}
}

// list returns the controllers by name.
func (r *Registry) list() []*Controller {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Controller, 0, len(r.controllers))
	for _, c := range r.controllers {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Controller) int { return strings.Compare(a.name, b.name) })
	return list
}

// Gatherer gives the metrics to programs.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }

// Handler answers scrapes: in the text format, or with exemplars in OpenMetrics
// where that is asked for.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes, ErrorLog: errorLog{r.cfg.Logger},
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
