package host

import "sync"

// Shares lets the modules that have it take turns on the processors. A call
// that ends within its first slices of fuel, about 1 ms, never waits. Longer ones run on as
// many processors as there are shares, and when more want to, each module gets
// a slice in turn, however many of its instances want to run. It needs CPUFuel.
// All methods are safe for concurrent use.
type Shares struct {
	processors int

	mu    sync.Mutex
	turns turns[*shared] // guarded by mu
}

// NewShares returns shares of so many processors, at least one. A process should
// have one more by runtime.GOMAXPROCS: where guests compute on all of them, Go
// looks for what the network and timers have woken every 10 ms only.
func NewShares(processors int) *Shares {
	return &Shares{processors: max(1, processors), turns: turns[*shared]{free: max(1, processors)}}
}

// take waits for a turn of the module. Who has one already keeps it while nobody
// else waits. It reports false, and the turn is gone, where done was closed
// before.
func (s *Shares) take(module *shared, has bool, done <-chan struct{}) bool {
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
func (s *Shares) enqueue(module *shared, has bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has && len(s.turns.ring) == 0 || !has && s.turns.take() {
		return nil
	}
	w := &waiter{make(chan struct{})}
	s.turns.wait(module, w) // first, so that the module does not follow itself
	if has {
		s.pass()
	}
	return w
}

// give ends a turn.
func (s *Shares) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a turn that ends to the next one; the caller holds mu.
func (s *Shares) pass() {
	if w := s.turns.next(); w != nil {
		close(w.given)
		return
	}
	s.turns.free++
}

// abandon ends waiting. The turn may have been given meanwhile.
func (s *Shares) abandon(module *shared, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.turns.leave(module, w) {
		s.pass()
	}
}
