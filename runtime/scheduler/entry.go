// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"math"
	"time"
)

// maxFree is the number of unused entries to keep for reuse. More are needed only in bursts, and after a burst the memory should be freed.
const maxFree = 1024

// instant is a time in nanoseconds since Scheduler.base. It is a third of the size of a time.Time, and cheaper to compare.
type instant int64

// never is later than every other instant.
const never instant = math.MaxInt64

// noDelay is the delay of a key that was never delayed. A delay that has expired is equivalent.
const noDelay instant = 0

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// instant converts a time to an instant. The first time ever converted becomes instant 1, so that no later time equals noDelay.
func (s *Scheduler[K, M]) instant(t time.Time) instant {
	if s.base.IsZero() {
		s.base = t.Add(-1)
	}
	return instant(t.Sub(s.base))
}

// time is the inverse of instant.
func (s *Scheduler[K, M]) time(i instant) time.Time { return s.base.Add(time.Duration(i)) }

// clamp converts a time to an instant that is neither in the past nor more than MaxDelay ahead.
func (s *Scheduler[K, M]) clamp(t time.Time) instant {
	if t.IsZero() {
		return s.now
	}
	return min(max(s.instant(t), s.now), s.now.add(MaxDelay))
}

// phase is the place of an entry.
type phase uint8

const (
	idle    phase = iota // in no list except running: no request is pending
	parked               // in timers until its delay expires: no request is pending, and the key does not run
	waiting              // in timers: its request is not due, or the key is delayed
	ready                // in the ready list of its class, for Pop, and in timers if it rises; if the key is running, in neither, and Done will queue it
)

// entry is the scheduler's state of one key. An entry is in Scheduler.entries while a request is pending or the key is running or delayed.
type entry[K comparable, M any] struct {
	key     K
	phase   phase
	running bool
	pending bool    // whether a request is pending
	delay   instant // the key is not handed out before this instant
	started instant // when it was handed out; valid while running

	// The pending request. While the key runs and nothing is pending, msg and priority belong to the run.
	debounced bool
	priority  Priority
	msg       M
	at        instant // when the request is due, ignoring delay
	limit     instant // the latest instant that at may be postponed to; valid if debounced
	rises     instant // when a Normal request in a Low one is due; never if there is none

	timer    instant // when the entry leaves timers; valid while it is in timers
	timerNo  uint64  // order among timers for the same instant; valid while it is in timers
	timerPos int     // index in timers; valid while it is in timers

	// Neighbors in the only list that the entry is in: running, the ready list of its class, or the free list.
	prev, next *entry[K, M]
}

// due returns when the pending request is due.
func (e *entry[K, M]) due() instant {
	if e.delay == noDelay {
		return e.at
	}
	return max(e.at, e.delay)
}

// clear resets the fields that matter only to a request or a run.
func (e *entry[K, M]) clear() {
	var none M
	e.msg, e.priority, e.rises = none, Normal, never
}

// urgent returns when the pending request is due with normal priority.
func (e *entry[K, M]) urgent() instant {
	if e.priority == Normal {
		return e.at
	}
	return e.rises
}

// rank sets the priority of the pending request at the time of its run: it is Low while no Normal request is due.
func (e *entry[K, M]) rank(urgent, at instant) {
	if e.priority, e.rises = Low, urgent; urgent <= at {
		e.priority, e.rises = Normal, never
	}
}

// debounce adds a debounced request to the pending one. The pending request is due at limit at the latest.
func (e *entry[K, M]) debounce(now instant, d Debounce, limit instant) {
	if !e.debounced {
		e.debounced, e.limit = true, min(limit, now.add(d.Max))
	}
	e.at = min(now.add(d.Quiet), e.limit)
}

// delayed reports whether the delay of an entry has not expired yet.
func (s *Scheduler[K, M]) delayed(e *entry[K, M]) bool { return e.delay != noDelay && e.delay > s.now }

// place puts an entry that is in no list or heap where it belongs at the instant s.now.
func (s *Scheduler[K, M]) place(e *entry[K, M]) {
	switch {
	case !e.pending && e.running:
		e.phase = idle
	case !e.pending && !s.delayed(e):
		s.release(e)
	case !e.pending:
		e.clear()
		s.parked++
		s.setTimer(e, parked, e.delay)
	case e.due() > s.now:
		s.setTimer(e, waiting, e.due())
	case e.running:
		e.rank(e.urgent(), s.now)
		e.phase = ready
		s.blocked++
	default:
		e.rank(e.urgent(), s.now)
		s.ready[e.priority.class()].push(e)
		e.phase = ready
		s.setRise(e, e.rises)
	}
}

// setRise sets when the priority of a ready entry rises.
func (s *Scheduler[K, M]) setRise(e *entry[K, M], at instant) {
	if e.rises = at; at != never {
		s.rising++
		s.setTimer(e, ready, at)
	}
}

// stopRise removes a ready entry from timers.
func (s *Scheduler[K, M]) stopRise(e *entry[K, M]) {
	if e.rises != never {
		s.rising--
		s.timers.remove(e)
	}
}

// unplace removes an entry from where place put it.
func (s *Scheduler[K, M]) unplace(e *entry[K, M]) {
	switch {
	case e.phase == parked:
		s.parked--
		s.timers.remove(e)
	case e.phase == waiting:
		s.timers.remove(e)
	case e.phase == ready && e.running:
		s.blocked--
	case e.phase == ready:
		s.ready[e.priority.class()].remove(e)
		s.stopRise(e)
	}
	e.phase = idle
}

func (s *Scheduler[K, M]) setTimer(e *entry[K, M], p phase, at instant) {
	s.timerNo++
	e.phase, e.timer, e.timerNo = p, at, s.timerNo
	s.timers.push(e)
}

// entry returns the entry of a key. If the key is unknown, it adds an idle one.
func (s *Scheduler[K, M]) entry(key K) *entry[K, M] {
	if e, known := s.entries[key]; known {
		return e
	}
	e := s.free.get()
	e.key = key
	s.entries[key] = e
	s.peak = max(s.peak, len(s.entries))
	return e
}

// release removes a key that has no pending request, does not run and is not delayed.
func (s *Scheduler[K, M]) release(e *entry[K, M]) {
	delete(s.entries, e.key)
	s.free.put(e)
	if len(s.entries) == 0 && s.peak > maxFree {
		// Go's maps and slices never shrink, so replace them after a burst.
		s.entries, s.timers, s.peak = make(map[K]*entry[K, M]), nil, 0
	}
}
