// Package metrics is what Prometheus can ask this process for: controller-runtime's
// and client-go's metrics under their own names and labels, so that dashboards
// and alerts that are made for them work, and those of what only this process
// has.
//
// Frequent events are counted in a Controller, by atomic additions. Everything else
// is read from its owner at a scrape (Stats, Process), so that metrics cost next to
// nothing without scrapes. The number of series is bounded: no label has the name
// of an object, and watches are by resource.
package metrics

import (
	"cmp"
	"errors"
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

// maxScrapes bounds how many scrapes are answered at a time.
const maxScrapes = 4

// Config says what a Registry reports the process. The zero value works.
type Config struct {
	// Version is that of the program.
	Version string
	// Process, if not nil, is asked at each scrape, by several goroutines at once.
	Process func() Process
	// Logger is notified why a scrape could not be answered; nil drops it.
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
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	r := &Registry{cfg: cfg, registry: prometheus.NewRegistry(), controllers: map[string]*Controller{}}
	r.registry.MustRegister(
		&collector{r}, &customs{r}, countRequests(),
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

// Remove makes the series of a controller go. Its later counts are not shown. A
// second time does nothing.
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
	return slices.SortedFunc(maps.Values(r.controllers), func(a, b *Controller) int { return strings.Compare(a.name, b.name) })
}

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
