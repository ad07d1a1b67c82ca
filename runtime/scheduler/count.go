package scheduler

import (
	"iter"
	"time"
)

// NextAt returns the time of the earliest timer, so that the owner needs to arm only one; false if no request is waiting.
func (s *Scheduler[K, M]) NextAt() (time.Time, bool) {
	if len(s.timers) == 0 {
		return time.Time{}, false
	}
	return s.timers[0].at, true
}

// Len returns the number of requests that are due and not handed out: the depth of the queue (rule 7). As in controller-runtime it counts
// those whose key is still running, and not those that wait for their time.
func (s *Scheduler[K, M]) Len() int {
	n := s.held
	for i := range s.ready {
		n += s.ready[i].len
	}
	return n
}

// Waiting returns the number of requests that are not due yet.
func (s *Scheduler[K, M]) Waiting() int { return len(s.timers) }

// Running returns the number of keys that are handed out and not done.
func (s *Scheduler[K, M]) Running() int { return s.running.len }

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
