// SPDX-License-Identifier: Apache-2.0

//go:build !tinygo

// Package garbage collects the garbage of a module between its runs.
//
// A module has one thread, which stands still between runs. A collection that
// the Go runtime starts during a run continues over many runs. These runs are
// slower, and their garbage stays until the collection after that. So, once
// enough memory was allocated, a run ends with a complete collection. The Go
// runtime starts one only during runs that need much memory.
package garbage

import "runtime"

// seldom is the maximum number of calls between two readings of the memory
// statistics, because a reading takes longer than the smallest runs. early is
// the number of calls before the first reading: it writes to pages that
// instances share until then, and most instances make few calls.
const (
	seldom = 1000
	early  = 8
)

// collector starts a collection when enough memory was allocated.
type collector struct {
	stats runtime.MemStats // not package metrics, which makes a module larger
	due   uint64           // value of TotalAlloc at which the next collection is due; 0 before the first reading
	read  uint64           // TotalAlloc at the last reading
	calls uint64           // calls from the last reading to the next one
	skip  uint64           // calls that remain before the next reading
}

var ofModule = collector{skip: early}

// AfterCall must be called at the end of each call. bounded reports whether the
// call has a fuel limit; if so, collections are left to the Go runtime, because
// a complete one would use a large part of the limit. AfterCall has no effect
// in a program that is not a module.
func AfterCall(bounded func() bool) {
	if runtime.GOOS == "wasip1" {
		ofModule.afterCall(bounded)
	}
}

func (c *collector) afterCall(bounded func() bool) {
	if c.skip > 0 {
		c.skip--
		return
	}
	runtime.ReadMemStats(&c.stats)
	switch {
	case c.due == 0:
		c.plan()
	case c.stats.TotalAlloc < c.due:
		c.wait(c.stats.TotalAlloc)
	case bounded():
		c.plan()
	default:
		runtime.GC()
		runtime.ReadMemStats(&c.stats)
		c.plan()
	}
}

// wait schedules the next reading. At the recent allocation rate, half of the
// memory that remains before the next collection is then allocated.
func (c *collector) wait(allocated uint64) {
	perCall := (allocated-c.read)/c.calls + 1
	c.skip = min(seldom, (c.due-allocated)/2/perCall)
	c.read, c.calls = allocated, c.skip+1
}

// plan sets the time of the next collection, before the Go runtime's own, which
// starts at 70 % of the way to its goal or later (runtime/mgcpacer.go:
// minTriggerRatioDistance).
func (c *collector) plan() {
	c.read, c.calls = c.stats.TotalAlloc, 1
	c.due = c.read + (max(c.stats.NextGC, c.stats.HeapAlloc)-c.stats.HeapAlloc)*6/10
}
