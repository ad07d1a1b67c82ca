// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmctl/wasmctl/abi"
)

// CustomPrefix is the prefix of metrics that modules report.
const CustomPrefix = "wasmctl_custom_"

// customHelp is the same for all, because several controllers may report the same name.
const customHelp = "Reported by modules with the host function metric."

// custom holds the metrics that the module of a controller has reported. The caller limits the number of names.
type custom struct {
	mu     sync.Mutex
	values map[string]float64 // by the exported name; guarded by mu
}

// CustomName returns the name under which a module's metric is exported.
func CustomName(kind int32, name string) string {
	if kind == abi.MetricCounter {
		name = strings.TrimSuffix(name, abi.MetricTotal) + abi.MetricTotal
	}
	return CustomPrefix + name
}

// Custom adds or sets a value that the module reports with the host function metric.
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

// customs collects the metrics reported by modules. It implements prometheus.Collector, and describes nothing, because the names are not
// known in advance.
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
