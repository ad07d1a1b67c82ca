// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Clock has the clocks and the randomness of guests. All must be safe for concurrent use.
type Clock struct {
	Now    func() time.Time
	Mono   func() int64 // nanoseconds
	Random io.Reader
}

// WithDefaults returns the clocks with those of the system in place of absent ones. The
// monotonic clock begins at start.
func (c Clock) WithDefaults(start time.Time) Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Mono == nil {
		c.Mono = func() int64 { return int64(time.Since(start)) }
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c
}

// Observer observes calls. Its functions may be nil. They are called by many goroutines at
// once, before the guest is released, and must be quick.
type Observer struct {
	// Metric receives what the guest reports with the host function metric, and returns its
	// answer: kind is abi.MetricCounter or abi.MetricGauge, and the name is valid for
	// Prometheus. If nil, metric answers UNSUPPORTED.
	Metric func(kind int32, name string, value float64) abi.Status
	// OnCall is notified of each call into a guest when it has ended: the export, its
	// duration and its error.
	OnCall func(export string, took time.Duration, err error)
	// OutsideRuns receives how long a guest computed in a call that belongs to no run: map
	// and filter, and start code that no run waits for. The cost of a run is in
	// abi.Run.Cost.
	OutsideRuns func(guest time.Duration)
}
