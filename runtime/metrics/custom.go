package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmctl/wasmctl/abi"
)

// CustomPrefix starts the names of what modules report.
const CustomPrefix = "wasmctl_custom_"

// customHelp is the same for all: one name may be of several controllers.
const customHelp = "Reported by modules with the host function metric."

// custom is what the module of a controller reports. Who reports bounds the number
// of names.
type custom struct {
	mu     sync.Mutex
	values map[string]float64 // by the name that is shown; guarded by mu
}

// CustomName is the name under which a metric of a module is shown.
func CustomName(kind int32, name string) string {
	if kind == abi.MetricCounter {
		name = strings.TrimSuffix(name, abi.MetricTotal) + abi.MetricTotal
	}
	return CustomPrefix + name
}

// Custom counts or sets what the module reports, by the host function metric.
func (c *Controller) Custom(kind int32, name string, value float64) {
	name = CustomName(kind, name)
	c.custom.mu.Lock()
	defer c.custom.mu.Unlock()
	if c.custom.values == nil {
		c.custom.values = map[string]float64{}
	}
	if kind == abi.MetricCounter {
		value += c.custom.values[name]
	}
	c.custom.values[name] = value
}

// customs gathers what modules report. It implements prometheus.Collector, and
// describes nothing: the names are known when they come.
type customs struct{ registry *Registry }

// Describe implements prometheus.Collector.
func (c *customs) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *customs) Collect(out chan<- prometheus.Metric) {
	for _, ctrl := range c.registry.list() {
		ctrl.custom.mu.Lock()
		for name, value := range ctrl.custom.values {
			kind := prometheus.GaugeValue
			if strings.HasSuffix(name, abi.MetricTotal) {
				kind = prometheus.CounterValue
			}
			out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, customHelp, []string{"controller"}, nil), kind, value, ctrl.name)
		}
		ctrl.custom.mu.Unlock()
	}
}
