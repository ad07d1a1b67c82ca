// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"iter"
	"time"
)

// State is what the pending request of a key waits for.
type State uint8

// The states.
const (
	Absent    State = iota // nothing is pending
	Waiting                // for its time
	Debounced              // for the end of the debounce
	Delayed                // for the end of a delay
	Blocked                // for the end of the key's run
	Ready                  // for its turn
)

// String returns the state as a lower-case word.
func (s State) String() string {
	return [...]string{"absent", "waiting", "debounced", "delayed", "blocked", "ready"}[min(s, Ready)]
}

// View is the state of one key in a Scheduler.
type View[M any] struct {
	// State is the state of the pending request.
	State State
	// At is until when the request waits (Waiting, Debounced, Delayed), or since when it has been due (Blocked, Ready). It is zero if State
	// is Absent.
	At time.Time
	// Msg and Priority belong to the pending request, with the priority at the time when it is due, or, if State is Absent and the key runs, to the run. They are zero if there is
	// neither.
	Msg      M
	Priority Priority
	// Running reports whether the key is running, and Since when the run started. A request may be pending at the same time.
	Running bool
	Since   time.Time
}

// Lookup returns the state of a key as of the last time passed in, or the zero View if the key is unknown. It is O(1).
func (s *Scheduler[K, M]) Lookup(key K) View[M] {
	e, known := s.entries[key]
	if !known {
		return View[M]{}
	}
	v := View[M]{Msg: e.msg, Priority: e.priority, Running: e.running}
	if e.running {
		v.Since = s.time(e.started)
	}
	if e.pending {
		v.At, v.State = s.time(e.due()), e.state()
	}
	return v
}

// Pending iterates over the keys with a pending request, in no order. The scheduler must not be changed during the iteration.
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

// NextAt returns the time of the earliest timer, so that the owner needs only one timer. It returns false if there is none.
func (s *Scheduler[K, M]) NextAt() (time.Time, bool) {
	if len(s.timers) == 0 {
		return time.Time{}, false
	}
	return s.time(s.timers[0].timer), true
}

// Len returns the number of requests that are due and not handed out: the depth of the queue (rule 7). As in controller-runtime, it
// includes requests whose key is still running, and excludes requests that are not due yet.
func (s *Scheduler[K, M]) Len() int { return s.blocked + s.Startable() }

// Startable returns the number of keys that Pop would hand out now.
func (s *Scheduler[K, M]) Startable() int {
	n := 0
	for i := range s.ready {
		n += s.ready[i].len
	}
	return n
}

// StartableOf returns how many of the Startable keys have the given priority.
func (s *Scheduler[K, M]) StartableOf(p Priority) int { return s.ready[p.clamp().class()].len }

// Waiting returns the number of requests that are not due yet, or whose key is delayed.
func (s *Scheduler[K, M]) Waiting() int { return len(s.timers) - s.parked - s.rising }

// Running returns the number of keys that are handed out and not done.
func (s *Scheduler[K, M]) Running() int { return s.running.len }

// OldestReady returns when the request at the front of the ready queue became due. If both classes have one, it returns the older; if no
// key can be started, it returns false. A request that was blocked or raised to a higher class is at the end of its queue, and does not
// count until it reaches the front.
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

// OldestRunning returns when the key that has been running longest was handed out, or false if no key is running.
func (s *Scheduler[K, M]) OldestRunning() (time.Time, bool) {
	if s.running.head == nil {
		return time.Time{}, false
	}
	return s.time(s.running.head.started), true
}

// RunningKeys iterates over the keys that are handed out and not done, in the order in which they were handed out. The scheduler must not
// be changed during the iteration.
func (s *Scheduler[K, M]) RunningKeys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for e := s.running.head; e != nil; e = e.next {
			if !yield(e.key) {
				return
			}
		}
	}
}
