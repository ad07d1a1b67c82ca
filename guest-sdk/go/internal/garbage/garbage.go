//go:build !tinygo

// Package garbage collects what the runs of a module leave behind.
//
// A module has one thread, which stands still between runs. A collection that Go
// starts in a run goes on in many: each of them is slower, and what they allocate
// meanwhile stays until the next collection. So a run ends with a whole collection
// once enough was allocated, and Go itself starts one only in a run that needs much.
package garbage

import "runtime"

// seldom is how many calls end without a look at what was allocated, at most: a look
// takes longer than the smallest runs. Early is how many do at first: a look also writes
// to pages that instances share until then, and most instances make few calls.
const (
	seldom = 1000
	early  = 8
)

// collector collects garbage when enough was allocated.
type collector struct {
	stats runtime.MemStats // package metrics makes a module larger
	due   uint64           // bytes allocated in all when the next collection is due; 0 before the first call
	read  uint64           // bytes allocated in all when that was last read
	calls uint64           // from then on to the next reading
	skip  uint64           // of these, those that are still to come before it
}

var ofModule = collector{skip: early}

// AfterCall is called at the end of each call; bounded says whether its work has a
// limit. It leaves all to Go where it has, as a collection would be a large part of
// that, and in a program that is no module.
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

// wait plans the next look for when half of what is left before a collection is
// allocated, at the rate of the last calls.
func (c *collector) wait(allocated uint64) {
	perCall := (allocated-c.read)/c.calls + 1
	c.skip = min(seldom, (c.due-allocated)/2/perCall)
	c.read, c.calls = allocated, c.skip+1
}

// plan plans the next collection. Go's own starts at 70 % of the way to its goal, or
// later (runtime/mgcpacer.go: minTriggerRatioDistance).
func (c *collector) plan() {
	c.read, c.calls = c.stats.TotalAlloc, 1
	c.due = c.read + (max(c.stats.NextGC, c.stats.HeapAlloc)-c.stats.HeapAlloc)*6/10
}
