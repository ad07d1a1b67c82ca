package host

import (
	"math"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// maxMetricName is the length of the longest name of a metric, in bytes.
const maxMetricName = 256

// metricSeries is what the module has reported until now.
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

// metric passes on what a guest reports.
func (in *instance) metric(kind int32, ptr, length uint32, value float64) abi.Status {
	if length > maxMetricName {
		return abi.StatusTooLarge
	}
	name, ok := in.memory.Read(ptr, length)
	if !ok {
		return abi.StatusBadRequest
	}
	if in.upstream != nil {
		return in.upstream.metric(kind, name, value)
	}
	return in.report(metricKey{kind, string(name)}, value)
}

// report passes on what a guest reports, within the limit.
func (in *instance) report(k metricKey, value float64) abi.Status {
	switch {
	case !validMetric(k, value):
		return abi.StatusBadRequest
	case in.gen.trial.Load():
		return abi.StatusOK
	case !in.gen.shared.series.admit(k, in.gen.limits.MetricSeries):
		in.gen.shared.hits.add(abi.LimitMetricSeries)
		return abi.StatusBudget
	}
	return in.gen.cfg.Metric(k.kind, k.name, value)
}

// validMetric reports whether Prometheus can show it. A gauge has no name that
// ends in _total, and a counter is shown with one: so a name never stands for a
// counter of one module and for a gauge of another.
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
