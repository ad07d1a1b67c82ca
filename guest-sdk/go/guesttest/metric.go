// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"maps"
	"math"
	"regexp"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

var metricName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Metrics returns the metrics that the reconciler has reported with
// Context.Metric so far, by name: the sum of each counter and the last value of
// each gauge. The name of a counter ends in _total, as in Prometheus.
func (h *Host) Metrics() map[string]float64 { return maps.Clone(h.metrics) }

// Metric implements imports.Host.
func (f functions) Metric(kind int32, name string, value float64) int32 {
	h, total := f.h, strings.HasSuffix(name, "_total")
	switch k := wasmctl.MetricKind(kind); {
	case len(name) > 256:
		return wasmctl.StatusTooLarge
	case !metricName.MatchString(name), math.IsNaN(value), math.IsInf(value, 0),
		k == wasmctl.MetricGauge && total, k == wasmctl.MetricCounter && value < 0, kind < 0, k > wasmctl.MetricGauge:
		return wasmctl.StatusBadRequest
	case k == wasmctl.MetricCounter:
		name = strings.TrimSuffix(name, "_total") + "_total"
		value += h.metrics[name]
	}
	if h.metrics == nil {
		h.metrics = map[string]float64{}
	}
	h.metrics[name] = value
	return 0
}
