package scheduler

import "time"

// maxFree is how many spent entries are kept. More than that are only needed in bursts, and a burst should give its memory back.
const maxFree = 1024

// instant is a time in nanoseconds since Scheduler.base: a third of the size of a time.Time, and cheaper to compare.
type instant int64

// noDelay is the hold of a key that was never held; a hold that has passed means the same.
const noDelay instant = 0

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// instant returns a time as an instant. The first time that it is given becomes instant 1, so that a time to come is never noDelay.
func (s *Scheduler[K, M]) instant(t time.Time) instant {
	if s.base.IsZero() {
		s.base = t.Add(-1)
	}
	return instant(t.Sub(s.base))
}

// time is the inverse of instant.
func (s *Scheduler[K, M]) time(i instant) time.Time { return s.base.Add(time.Duration(i)) }

// clamp returns a time as an instant that is neither in the past nor farther than MaxDelay.
func (s *Scheduler[K, M]) clamp(t time.Time) instant {
	if t.IsZero() {
		return s.now
	}
	return min(max(s.instant(t), s.now), s.now.add(MaxDelay))
}

// phase says where an entry is.
type phase uint8

const (
	idle    phase = iota // in no list but running: no request is pending
	parked               // in timers, until its hold has passed: no request is pending, and the key does not run
	waiting              // in timers: its request is not due, or the key is held
	ready                // in the list of its class, for Pop; or, if the key is running, in no list, for Done
)

// entry is all that the scheduler knows of one key. An entry is in Scheduler.entries as long as a request is pending or the key runs or is
// held.
type entry[K comparable, M any] struct {
	key     K
	phase   phase
	running bool
	pending bool    // a request is
	delay   instant // not to be handed out before
	started instant // when it was handed out; valid while running

	// The pending request; of them msg and priority are those of the run while the key runs and nothing is pending.
	debounced bool
	priority  Priority
	msg       M
	at        instant // when the request is due, but for a hold
	limit     instant // the latest that at may be postponed to; valid if debounced

	timer    instant // when it leaves timers; valid while parked or waiting
	timerNo  uint64  // order among timers for the same time; valid likewise
	timerPos int     // index in timers; valid likewise

	// Neighbours in the one list that the entry is in: running, the ready list of its class, or the free list.
	prev, next *entry[K, M]
}

// due returns when the pending request is due.
func (e *entry[K, M]) due() instant {
	if e.delay == noDelay {
		return e.at
	}
	return max(e.at, e.delay)
}

// clear lets go of what no request and no run has a use for.
func (e *entry[K, M]) clear() {
	var none M
	e.msg, e.priority = none, Normal
}

// debounce takes a request in that is gathered; limit is when the pending request was due otherwise.
func (e *entry[K, M]) debounce(now instant, d Debounce, limit instant) {
	if !e.debounced {
		e.debounced, e.limit = true, min(limit, now.add(d.Max))
	}
	e.at = min(now.add(d.Quiet), e.limit)
}

// held says whether an entry has a hold that has not passed.
func (s *Scheduler[K, M]) held(e *entry[K, M]) bool { return e.delay != noDelay && e.delay > s.now }

// place puts an entry that is nowhere where it belongs at the time s.now.
func (s *Scheduler[K, M]) place(e *entry[K, M]) {
	switch {
	case !e.pending && e.running:
		e.phase = idle
	case !e.pending && !s.held(e):
		s.release(e)
	case !e.pending:
		e.clear()
		s.parked++
		s.setTimer(e, parked, e.delay)
	case e.due() > s.now:
		s.setTimer(e, waiting, e.due())
	case e.running:
		e.phase = ready
		s.blocked++
	default:
		e.phase = ready
		s.ready[e.priority.class()].push(e)
	}
}

// unplace takes an entry out of where place has put it.
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
	}
	e.phase = idle
}

func (s *Scheduler[K, M]) setTimer(e *entry[K, M], p phase, at instant) {
	s.timerNo++
	e.phase, e.timer, e.timerNo = p, at, s.timerNo
	s.timers.push(e)
}

// entry returns the entry of a key; a new idle one if the key is unknown.
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

// release forgets a key that has no pending request, does not run and is not held.
func (s *Scheduler[K, M]) release(e *entry[K, M]) {
	delete(s.entries, e.key)
	s.free.put(e)
	if len(s.entries) == 0 && s.peak > maxFree {
		// Go's maps and slices never shrink by themselves: replace them after a burst.
		s.entries, s.timers, s.peak = make(map[K]*entry[K, M]), nil, 0
	}
}
