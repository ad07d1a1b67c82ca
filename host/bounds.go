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
