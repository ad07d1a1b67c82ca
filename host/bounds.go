package host

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// reportEvery is how often dropped lines are reported, after the first.
const reportEvery = time.Minute

// logGate bounds what all instances of a module log.
type logGate struct {
	lines, bytes bucket

	mu       sync.Mutex
	dropped  uint64    // lines, since they were notified of; guarded by mu
	reported time.Time // guarded by mu
}

// admit takes a line of n bytes. Else it returns the limit that is reached, and,
// when it is time to tell, how many lines were dropped.
func (g *logGate) admit(now time.Time, l *Limits, n int) (over abi.LimitName, dropped uint64) {
	switch {
	case !g.lines.try(now, l.LogLines, 1):
		over = abi.LimitLogLines
	case !g.bytes.try(now, l.LogBytes, int64(n)):
		over = abi.LimitLogBytes
	default:
		return "", 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropped++
	if !g.reported.IsZero() && now.Sub(g.reported) < reportEvery {
		return over, 0
	}
	dropped = g.dropped
	g.reported, g.dropped = now, 0
	return over, dropped
}

// allowEvent takes one event, or returns the limit that is reached.
func (in *instance) allowEvent() abi.LimitName {
	l := &in.gen.limits
	if in.run.events >= l.Events {
		return abi.LimitEvents
	}
	if !in.gen.shared.events.try(time.Now(), l.EventRate, 1) {
		return abi.LimitEventRate
	}
	in.run.events++
	return ""
}

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
	k := metricKey{kind, string(name)}
	if !in.gen.shared.series.admit(k, in.gen.limits.MetricSeries) {
		in.gen.shared.hits.add(abi.LimitMetricSeries)
		return abi.StatusBudget
	}
	return in.gen.cfg.Metric(kind, k.name, value)
}
