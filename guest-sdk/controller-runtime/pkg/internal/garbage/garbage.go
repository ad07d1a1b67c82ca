// Package garbage collects what the runs of a module leave behind.
//
// A module has one thread, which stands still between runs. A collection that Go
// starts in a run goes on in many: each of them is slower, and what they allocate
// meanwhile stays until the next collection. So a run ends with a whole collection
// once enough was allocated, and Go itself starts one only in a run that needs much.
package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

const (
	// step is how many bytes runs allocate before their garbage is collected. It is
	// half of what is in use where that is more.
	step = 3 << 20
	// percent of what is in use is what a run may allocate before Go collects; its
	// default is 100.
	percent = 200
	// seldom is how many runs end without a look at what was allocated, at most: it
	// takes some percent of a small run.
	seldom = 7
)

// collector collects garbage when enough was allocated.
type collector struct {
	samples []metrics.Sample // bytes allocated in all, and those that the last collection found in use
	due     uint64           // bytes allocated in all when the next collection is due
	read    uint64           // bytes allocated in all when that was last read
	runs    uint64           // from then on to the next reading
	skip    uint64           // of these, those that are still to come before it
}

var ofModule collector

// AfterRun is called at the end of each run. It leaves all to Go where a run has a
// bound of its work, which a collection would be a large part of, and in a program
// that is no module.
func AfterRun(c *wasmctl.Context) {
	if _, bounded := c.Budget(wasmctl.BudgetFuel); !bounded && runtime.GOOS == "wasip1" {
		ofModule.afterRun()
	}
}

func (c *collector) afterRun() {
	if c.samples == nil { // not earlier: the garbage of main would be in all instances
		debug.SetGCPercent(percent)
		c.samples = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
		c.plan()
	}
	if c.skip > 0 {
		c.skip--
		return
	}
	metrics.Read(c.samples[:1])
	if c.look(c.samples[0].Value.Uint64()) {
		runtime.GC()
		c.plan()
	}
}

// look reports whether a collection is due, with so many bytes allocated in all. If not,
// the next look is when half of what is left is allocated, at the rate of the last runs.
func (c *collector) look(allocated uint64) bool {
	if allocated >= c.due {
		return true
	}
	perRun := (allocated-c.read)/c.runs + 1
	c.skip = min(seldom, (c.due-allocated)/2/perRun)
	c.read, c.runs = allocated, c.skip+1
	return false
}

func (c *collector) plan() {
	metrics.Read(c.samples)
	c.read, c.runs = c.samples[0].Value.Uint64(), 1
	c.due = c.read + max(step, c.samples[1].Value.Uint64()/2)
}
