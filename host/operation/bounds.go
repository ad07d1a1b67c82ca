// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// reportEvery is the interval at which dropped lines are reported, after the first.
const reportEvery = time.Minute

// logGate bounds the log of all instances of a module.
type logGate struct {
	lines, bytes share.Bucket

	mu       sync.Mutex
	dropped  uint64    // lines since the last report; guarded by mu
	reported time.Time // guarded by mu
}

// admit takes a line of n bytes, or returns the limit that is reached and, if a report is
// due, how many lines were dropped.
func (l *logGate) admit(now time.Time, limits *share.Limits, n int) (over abi.LimitName, dropped uint64) {
	switch {
	case !l.lines.Try(now, limits.LogLines, 1):
		over = abi.LimitLogLines
	case !l.bytes.Try(now, share.LogBytes, int64(n)):
		over = abi.LimitLogBytes
	default:
		return "", 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped++
	if !l.reported.IsZero() && now.Sub(l.reported) < reportEvery {
		return over, 0
	}
	dropped = l.dropped
	l.reported, l.dropped = now, 0
	return over, dropped
}

// allowEvent takes one event, or returns the limit that is reached.
func (d *Desk) allowEvent() abi.LimitName {
	if d.Run.Events >= share.Events {
		return abi.LimitEvents
	}
	if !d.Env.Module.events.Try(time.Now(), d.Env.Limits.EventRate, 1) {
		return abi.LimitEventRate
	}
	d.Run.Events++
	return ""
}
