package host

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Memory returns the linear memory of all instances of the module, idle ones
// included, in bytes. It takes no lock.
func (m *Module) Memory() int64 { return m.shared.memory.Load() }

// computing is how long the guest of an entry call computed, and waited. It reads
// the clocks that host functions and time slices read for their own sake.
type computing struct {
	guest time.Duration // up to since, or up to the last host function
	since time.Duration // from the beginning of the call to where the guest goes on
	idle  time.Duration // of the call: asleep, or waiting for a time slice or for the fuel rate
}

// pause notes that the guest stops to compute, so long after the beginning.
func (c *computing) pause(now time.Duration) {
	c.guest += max(0, now-c.since)
	c.since = now
}

// idled counts and returns the time since then, in which nobody worked.
func (c *computing) idled(startedAt time.Time) time.Duration {
	d := time.Since(startedAt)
	c.idle += d
	return d
}

// spend adds up what a call that took so long has cost: for its run or, without
// one, for Config.OutsideRuns. The time of a guest process is what that says,
// within the time that there was.
func (in *instance) spend(run *abi.Run, took time.Duration) {
	if in.remote == nil {
		in.run.pause(took)
	}
	guest := min(in.run.guest, took)
	if run == nil || run.Cost == nil {
		if in.gen.cfg.OutsideRuns != nil {
			in.gen.cfg.OutsideRuns(guest)
		}
		return
	}
	run.Cost.Guest += guest
	run.Cost.Idle += min(in.run.idle, took-guest)
}
