// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"math"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// MaxMetricName is the length of the longest name of a metric, in bytes.
const MaxMetricName = 256

// metricSeries has the metrics that the module has reported.
type metricSeries struct {
	mu    sync.Mutex
	known map[metricKey]struct{} // guarded by mu
}

type metricKey struct {
	kind int32
	name string
}

// admit reports whether a series is known or there is room for it.
func (s *metricSeries) admit(k metricKey, limit int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[k]; ok {
		return true
	}
	if int64(len(s.known)) >= limit {
		return false
	}
	if s.known == nil {
		s.known = map[metricKey]struct{}{}
	}
	s.known[k] = struct{}{}
	return true
}

// Metric implements Host.
func (d *Desk) Metric(kind int32, name []byte, value float64) abi.Status {
	if d.Env.Metric == nil {
		return abi.StatusUnsupported
	}
	d.Run.Sources |= abi.SourceMetric
	k := metricKey{kind, string(name)}
	switch {
	case len(name) > MaxMetricName:
		return abi.StatusTooLarge
	case !validMetric(k, value):
		return abi.StatusBadRequest
	case d.Env.Trial.Load():
		return abi.StatusOK
	case !d.Env.Module.series.admit(k, d.Env.Limits.MetricSeries):
		d.Env.Share.Hits.Add(abi.LimitMetricSeries)
		return abi.StatusBudget
	}
	return d.Env.Metric(k.kind, k.name, value)
}

// validMetric reports whether Prometheus can show a metric. The name of a gauge must not end
// in _total, because that of a shown counter does: so a name never stands for a counter of
// one module and for a gauge of another.
func validMetric(k metricKey, value float64) bool {
	if k.name == "" || math.IsNaN(value) || math.IsInf(value, 0) {
		return false
	}
	for i, c := range []byte(k.name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	switch k.kind {
	case abi.MetricCounter:
		return value >= 0
	case abi.MetricGauge:
		return !strings.HasSuffix(k.name, abi.MetricTotal)
	}
	return false
}
