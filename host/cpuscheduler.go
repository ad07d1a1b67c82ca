package host

import "sync"

// CPUScheduler lets modules share the CPUs in time slices. A call that ends within its first
// slices of fuel, about 1 ms, never waits. Longer ones run on as many CPUs as there
// are shares, and when more want to, each module gets a slice in turn, however many of its
// instances want to run. All methods are safe for concurrent use.
type CPUScheduler struct {
	cpus int

	mu         sync.Mutex
	timeSlices timeSlices[*shared] // guarded by mu
}

// NewCPUScheduler returns a scheduler of this many CPUs, at least one. A process
// should have one more by runtime.GOMAXPROCS: where guests compute on all of
// them, Go looks for what the network and timers have woken every 10 ms only.
func NewCPUScheduler(cpus int) *CPUScheduler {
	return &CPUScheduler{cpus: max(1, cpus), timeSlices: timeSlices[*shared]{free: max(1, cpus)}}
}

// take waits for a turn of the module. An owner keeps its time slice while no
// other module waits. It reports false, and the turn is gone, where done was
// closed before.
func (s *CPUScheduler) take(module *shared, has bool, done <-chan struct{}) bool {
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

// enqueue returns nil where the turn can be had at once.
func (s *CPUScheduler) enqueue(module *shared, has bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has && len(s.timeSlices.ring) == 0 || !has && s.timeSlices.take() {
		return nil
	}
	w := &waiter{make(chan struct{})}
	s.timeSlices.wait(module, w) // first, so that the module does not follow itself
	if has {
		s.pass()
	}
	return w
}

// give ends a turn.
func (s *CPUScheduler) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a turn that ends to the next one; the caller holds mu.
func (s *CPUScheduler) pass() {
	if w := s.timeSlices.next(); w != nil {
		close(w.given)
		return
	}
	s.timeSlices.free++
}

// abandon ends waiting. The turn may have been given meanwhile.
func (s *CPUScheduler) abandon(module *shared, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.timeSlices.leave(module, w) {
		s.pass()
	}
}
