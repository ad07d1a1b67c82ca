// SPDX-License-Identifier: Apache-2.0

package share

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestYield_WhereSomebodyWaitsOrNothingIsFree(t *testing.T) {
	for _, c := range []struct {
		free, spare int
		runnable    uint64
		want        bool
	}{
		{0, 0, 0, true},
		{0, 0, 3, true},
		{1, 0, 0, false},
		{1, 0, 1, true},
		{7, 0, 0, false},
		{7, 0, 2, true},
		{0, 1, 0, false},
		{0, 1, 1, true},
		{1, 1, 0, false},
		{1, -1, 0, true}, // fewer CPUs than there were
	} {
		if got := mustYield(c.free, c.spare, c.runnable); got != c.want {
			t.Errorf("%d CPUs are free, %d spare and %d goroutines wait: got %v", c.free, c.spare, c.runnable, got)
		}
	}
}

// The runtime counts those who wait for a CPU, and not those who wait for
// something else.
func TestYield_CountsGoroutinesThatWaitForACPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const n = 20
	var r Runnable
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { <-release })
	}
	if got := r.count(); got < n { // none of them has run
		t.Errorf("%d goroutines wait for the CPU, want %d", got, n)
	}
	runtime.Gosched() // now they wait for release
	for end := time.Now().Add(time.Minute); r.count() >= n && time.Now().Before(end); runtime.Gosched() {
	}
	if got := r.count(); got >= n {
		t.Errorf("%d goroutines wait for the CPU, want none of ours", got)
	}
	close(release)
	wg.Wait()
}
