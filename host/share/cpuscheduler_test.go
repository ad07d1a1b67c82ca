// SPDX-License-Identifier: Apache-2.0

package share

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Hammer: never more time slices at once than CPUs, and none is lost when
// waiters give up in between.
func TestCPUScheduler_Hammer(t *testing.T) {
	const cpus = 3
	s := NewCPUScheduler(cpus)
	modules := []*Module{{}, {}, {}, {}}
	var running, most, gone atomic.Int64
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 300 {
				done := make(chan struct{})
				if i%3 == 0 {
					go close(done)
				}
				has := s.Take(modules[w%4], false, done)
				for round := 0; has && round < 3; round++ {
					n := running.Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					runtime.Gosched()
					running.Add(-1)
					has = s.Take(modules[w%4], true, done)
				}
				if has {
					s.Give()
				} else {
					gone.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if s.Free() != cpus || s.Waiting() > 0 {
		t.Errorf("%d CPUs are free and %d calls wait", s.Free(), s.Waiting())
	}
	if most.Load() > cpus || gone.Load() == 0 {
		t.Errorf("%d at once of %d; %d stopped waiting", most.Load(), cpus, gone.Load())
	}
}
