// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// computing is how long the guest of an entry call computed and waited. It reads the clocks
// that host functions and time slices read anyway.
type computing struct {
	guest time.Duration // up to since, or up to the last host function
	since time.Duration // from the beginning of the call to where the guest goes on
	idle  time.Duration // of the call: asleep, or waiting for a time slice or for the fuel rate
}

// pause records that the guest stops computing, at a time after the beginning.
func (c *computing) pause(now time.Duration) {
	c.guest += max(0, now-c.since)
	c.since = now
}

// idled counts and returns the time since startedAt, in which neither guest nor host worked.
func (c *computing) idled(startedAt time.Time) time.Duration {
	d := time.Since(startedAt)
	c.idle += d
	return d
}

// spend adds the cost of a call that took this long to its run or, without a run, passes it
// to OutsideRuns. A guest process reports its own time, which is bounded by took.
func (in *Instance) spend(run *abi.Run, took time.Duration) {
	in.guest.Ended(took)
	guest := min(in.time.guest, took)
	if run == nil || run.Cost == nil {
		if in.Spec.Observer.OutsideRuns != nil {
			in.Spec.Observer.OutsideRuns(guest)
		}
		return
	}
	run.Cost.Guest += guest
	run.Cost.Idle += min(in.time.idle, took-guest)
}
