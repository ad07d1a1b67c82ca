// SPDX-License-Identifier: Apache-2.0

package share

import (
	"maps"
	"sync"
	"weak"
)

// CPUScheduler lets modules share the CPUs in time slices. A call that ends within its
// first slices of fuel, about 1 ms, does not wait, unless its tenant has made too many such
// calls: see ShortCalls. Longer calls run on as many CPUs as the scheduler has. If more calls want to run, each tenant gets a slice in turn, however many of
// its modules wait, and each module of a tenant, however many of its instances wait. All
// methods are safe for concurrent use.
type CPUScheduler struct {
	cpus int

	mu         sync.Mutex
	timeSlices timeSlices[*Module]                 // guarded by mu
	short      map[string]weak.Pointer[ShortCalls] // by tenant; guarded by mu
}

// NewCPUScheduler returns a scheduler for this many CPUs, at least one. The process should
// have one more by runtime.GOMAXPROCS: if guests compute on all of them, Go looks only
// every 10 ms for goroutines that the network and timers have woken.
func NewCPUScheduler(cpus int) *CPUScheduler {
	return &CPUScheduler{cpus: max(1, cpus), timeSlices: timeSlices[*Module]{free: max(1, cpus)}, short: map[string]weak.Pointer[ShortCalls]{}}
}

// ShortCalls returns those of a tenant, the same ones while somebody has them. They are nil if
// s is nil.
func (s *CPUScheduler) ShortCalls(tenant string) *ShortCalls {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.short[tenant].Value(); known != nil {
		return known
	}
	maps.DeleteFunc(s.short, func(_ string, p weak.Pointer[ShortCalls]) bool { return p.Value() == nil })
	made := &ShortCalls{}
	s.short[tenant] = weak.Make(made)
	return made
}

// Take waits for a turn of the module. A caller that has a turn keeps it while no other
// module waits. Take returns false, and the turn is gone, if done was closed first.
func (s *CPUScheduler) Take(module *Module, has bool, done <-chan struct{}) bool {
	w := s.enqueue(module, has)
	if w == nil {
		return true
	}
	select {
	case <-w.given:
		return true
	case <-done:
		s.abandon(module, w)
		return false
	}
}

// enqueue returns nil if the caller has a turn at once.
func (s *CPUScheduler) enqueue(module *Module, has bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has && len(s.timeSlices.ring) == 0 || !has && s.timeSlices.take() {
		return nil
	}
	w := &waiter{make(chan struct{})}
	s.timeSlices.wait(module.Tenant, module, w) // first, so that the module does not follow itself
	if has {
		s.pass()
	}
	return w
}

// Give ends a turn.
func (s *CPUScheduler) Give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a turn that ends to the next waiter; the caller holds mu.
func (s *CPUScheduler) pass() {
	if w := s.timeSlices.next(); w != nil {
		close(w.given)
		return
	}
	s.timeSlices.free++
}

// abandon ends waiting. The turn may have been given meanwhile.
func (s *CPUScheduler) abandon(module *Module, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.timeSlices.leave(module.Tenant, module, w) {
		s.pass()
	}
}

// Free returns the number of CPUs on which no call has a turn.
func (s *CPUScheduler) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeSlices.free
}

// Waiting returns the number of calls that wait for a turn.
func (s *CPUScheduler) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.timeSlices.ring {
		for _, l := range g.ring {
			n += len(l.waiters)
		}
	}
	return n
}
