// SPDX-License-Identifier: Apache-2.0

//go:build !tinygo

package garbage

import (
	"runtime"
	"testing"
)

// TestCollector_CollectsOnceEnoughWasAllocated: a collection happens within a
// few runs after the threshold, once and not before.
func TestCollector_CollectsOnceEnoughWasAllocated(t *testing.T) {
	unbounded := func() bool { return false }
	var c collector
	before := forced()
	c.afterCall(unbounded)
	c.afterCall(unbounded)
	if n := forced() - before; n != 0 {
		t.Errorf("%d collections before anything was allocated", n)
	}
	for range 3 {
		before = forced()
		_ = make([]byte, c.due-c.stats.TotalAlloc)
		for range seldom + 1 {
			c.afterCall(unbounded)
		}
		if n := forced() - before; n != 1 {
			t.Errorf("%d collections, want one", n)
		}
	}
}

// TestCollector_LeavesABoundedCallToGo: a collection would use a large part of
// the fuel limit.
func TestCollector_LeavesABoundedCallToGo(t *testing.T) {
	var c collector
	asked, before := 0, forced()
	bounded := func() bool { asked++; return true }
	c.afterCall(bounded)
	_ = make([]byte, c.due-c.stats.TotalAlloc)
	for range seldom + 1 {
		c.afterCall(bounded)
	}
	if asked != 1 || forced() != before {
		t.Errorf("asked %d times, %d collections", asked, forced()-before)
	}
}

// forced returns the number of collections that the program has requested.
func forced() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}
