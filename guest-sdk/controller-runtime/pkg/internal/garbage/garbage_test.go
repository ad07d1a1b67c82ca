package garbage

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollector_CollectsOnceEnoughWasAllocated: not before, and once for that, within
// some runs.
func TestCollector_CollectsOnceEnoughWasAllocated(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(100) })
	var c collector
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	before := collections()
	c.afterRun()
	c.afterRun()
	if n := collections() - before; n != 0 {
		t.Errorf("%d collections before anything was allocated", n)
	}
	for range 3 {
		before = collections()
		_ = make([]byte, c.due-c.samples[0].Value.Uint64())
		for range seldom + 1 {
			c.afterRun()
		}
		if n := collections() - before; n != 1 {
			t.Errorf("%d collections, want one", n)
		}
	}
}
