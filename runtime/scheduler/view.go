package scheduler

import (
	"iter"
	"time"
)

// State says what the pending request of a key waits for.
type State uint8

// The states.
const (
	Absent    State = iota // nothing is pending
	Waiting                // for the time that it was asked for
	Debounced              // for the end of the debounce
	Delayed                // for the end of a hold
	Blocked                // for the end of the key's run
	Ready                  // for its turn
)

// String returns the state as a lower-case word.
func (s State) String() string {
	return [...]string{"absent", "waiting", "debounced", "delayed", "blocked", "ready"}[min(s, Ready)]
}

// View is what a Scheduler knows of one key.
type View[M any] struct {
	// State is that of the pending request.
	State State
	// At is until when the request waits (Waiting, Debounced, Held), or since when it is due (Blocked, Ready); zero if State is Absent.
	At time.Time
	// Msg and Priority are those of the pending request or, if State is Absent and the key runs, of the run; zero if that request was
	// forgotten.
	Msg      M
	Priority Priority
	// Running says that the key runs, and Since is since when; a request may be pending as well.
	Running bool
	Since   time.Time
	// DelayedUntil is when a hold of the key ends, whether or not a request is pending; zero if it is not held.
	DelayedUntil time.Time
}

// Lookup returns what is known of a key at the time that the scheduler was last told; the zero View if that is nothing. It is O(1).
func (s *Scheduler[K, M]) Lookup(key K) View[M] {
	e, known := s.entries[key]
	if !known {
		return View[M]{}
	}
	v := View[M]{Msg: e.msg, Priority: e.priority, Running: e.running}
	if e.running {
		v.Since = s.time(e.started)
	}
	if s.held(e) {
		v.DelayedUntil = s.time(e.delay)
	}
	if e.pending {
		v.At, v.State = s.time(e.due()), e.state()
	}
	return v
}

// Pending iterates over the keys that a request is pending for, in no order. The scheduler must not be changed while the iteration goes on.
func (s *Scheduler[K, M]) Pending() iter.Seq[K] {
	return func(yield func(K) bool) {
		for key, e := range s.entries {
			if e.pending && !yield(key) {
				return
			}
		}
	}
}

// state returns the state of a pending request.
func (e *entry[K, M]) state() State {
	switch {
	case e.phase == ready && e.running:
		return Blocked
	case e.phase == ready:
		return Ready
	case e.due() > e.at:
		return Delayed
	case e.debounced:
		return Debounced
	}
	return Waiting
}

// NextAt returns the time of the earliest timer, so that the owner needs to arm only one; false if there is none.
func (s *Scheduler[K, M]) NextAt() (time.Time, bool) {
	if len(s.timers) == 0 {
		return time.Time{}, false
	}
	return s.time(s.timers[0].timer), true
}

// Len returns the number of requests that are due and not handed out: the depth of the queue (rule 7). As in controller-runtime it counts
// those whose key is still running, and not those that wait for their time.
func (s *Scheduler[K, M]) Len() int { return s.blocked + s.Startable() }

// Startable returns the number of keys that Pop would hand out now.
func (s *Scheduler[K, M]) Startable() int {
	n := 0
	for i := range s.ready {
		n += s.ready[i].len
	}
	return n
}

// StartableOf returns how many of Startable are of a priority.
func (s *Scheduler[K, M]) StartableOf(p Priority) int { return s.ready[p.clamp().class()].len }

// Waiting returns the number of requests that are not due yet, or whose key is held.
func (s *Scheduler[K, M]) Waiting() int { return len(s.timers) - s.parked }

// Running returns the number of keys that are handed out and not done.
func (s *Scheduler[K, M]) Running() int { return s.running.len }

// OldestReady returns since when the request is due that is at the front of its class, the older one if both classes have one; false if
// nothing is startable. One that was blocked, or raised from a lower class, joined the end and does not count before its turn comes.
func (s *Scheduler[K, M]) OldestReady() (time.Time, bool) {
	var oldest *entry[K, M]
	for i := range s.ready {
		if e := s.ready[i].head; e != nil && (oldest == nil || e.due() < oldest.due()) {
			oldest = e
		}
	}
	if oldest == nil {
		return time.Time{}, false
	}
	return s.time(oldest.due()), true
}

// OldestRunning returns when the key that has been running longest was handed out; false if none is running.
func (s *Scheduler[K, M]) OldestRunning() (time.Time, bool) {
	if s.running.head == nil {
		return time.Time{}, false
	}
	return s.time(s.running.head.started), true
}

// RunningKeys iterates over the keys that are handed out and not done, the one that was handed out first at the front. The scheduler must
// not be changed while the iteration goes on.
func (s *Scheduler[K, M]) RunningKeys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for e := s.running.head; e != nil; e = e.next {
			if !yield(e.key) {
				return
			}
		}
	}
}
