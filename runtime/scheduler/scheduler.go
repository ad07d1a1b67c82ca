// SPDX-License-Identifier: Apache-2.0

// Package scheduler decides when a key is handed out: delay, deduplication, debounce and order. It never hands out a key that is running.
//
// A Scheduler is a pure data structure. It starts no goroutine, takes no lock, reads no clock and does no I/O: time comes in as an
// argument, decisions come out as return values. One goroutine owns it (the loop of package runner does).
//
//	s := scheduler.New[string, string](scheduler.Config[string]{})
//	s.Schedule(now, scheduler.Request[string, string]{Key: "default/web", Msg: "changed"})
//	for item, ok := s.Pop(now); ok; item, ok = s.Pop(now) {
//		// run item.Key ...
//		s.Done(item.Key)
//	}
//
// # The states of a key
//
// A key has at most one pending request. Independently of that, it is running or not:
//
//	(unknown) --Schedule, due later--> waiting: until its timer expires in Advance, which makes it ready
//	(unknown) --Schedule, due now----> ready:   for Pop; if the key is running, it is blocked, and nothing queues behind it
//	ready     --Pop------------------> running: until Done; a request that comes meanwhile is pending as above
//	running   --Done-----------------> unknown or, if a request is pending, the state of that request
//	any       --Delay----------------> unchanged, but a pending request waits until the delay has expired; see Lookup
//
// # Order
//
// Requests are handed out first in, first out within a priority, in the order in which they became due; one that was blocked because
// its key was running joins the end when the key is done. The higher priority goes first, but a lower one is never starved:
// see MaxPassedOver.
package scheduler

import "time"

// Scheduler holds at most one pending request for each key, and hands out keys that are due and not running. Make one with New. It is not
// safe for concurrent use.
type Scheduler[K comparable, M any] struct {
	cfg     Config[M]
	base    time.Time               // instant 0: just before the first time passed in
	now     instant                 // the last time passed in
	entries map[K]*entry[K, M]      // every key that is pending, running or delayed
	timers  timers[K, M]            // pending but not due, delayed without a pending request, and ready until their priority rises
	parked  int                     // entries in timers that are delayed and not pending
	rising  int                     // entries in timers that are ready
	ready   [priorities]queue[K, M] // pending, due and not running, by class
	blocked int                     // pending and due, but the key is running
	running list[K, M]              // handed out and not done
	timerNo uint64                  // number of the last timer set; keeps timers for the same time in order
	free    freeList[K, M]          // unused entries, to avoid allocations
	peak    int                     // most entries since the scheduler was last empty
}

// New returns an empty Scheduler. A Debounce that Validate rejects is clamped to valid values.
func New[K comparable, M any](cfg Config[M]) *Scheduler[K, M] {
	cfg.Debounce = cfg.Debounce.withDefaults()
	return &Scheduler[K, M]{cfg: cfg, entries: make(map[K]*entry[K, M])}
}

// Schedule adds a request, or merges it into the pending request of the same key: the earlier time wins, the highest priority of those that
// are due wins, and Config.Merge combines the messages (rules 2 and 3). A ready request whose priority rises goes to the end of the higher
// class. A request without a time is debounced: see Debounce.
//
// Schedule advances the scheduler to now. It is O(1), and does not allocate if the key is known; setting or moving a timer is O(log n) in
// the number of timers.
func (s *Scheduler[K, M]) Schedule(now time.Time, req Request[K, M]) {
	s.Advance(now)
	req.Priority = req.Priority.clamp()
	at := s.clamp(req.At)
	debounced := req.At.IsZero() && s.cfg.Debounce.Quiet > 0
	e := s.entry(req.Key)
	if !e.pending {
		s.unplace(e)
		e.pending, e.debounced = true, false
		e.msg, e.priority, e.at, e.rises = req.Msg, req.Priority, at, never
		if debounced {
			e.debounce(s.now, s.cfg.Debounce, s.now.add(MaxDelay))
		}
		s.place(e)
		return
	}
	switch {
	case s.cfg.Merge != nil:
		e.msg = s.cfg.Merge(e.msg, req.Msg)
	case e.phase == waiting && at <= e.at:
		e.msg = req.Msg
	}
	s.merge(e, req.Priority, at, debounced)
}

// merge adds the time and the priority of a request to the pending one.
func (s *Scheduler[K, M]) merge(e *entry[K, M], priority Priority, at instant, debounced bool) {
	due, before := e.due(), e.urgent()
	if e.phase == waiting {
		if debounced {
			e.debounce(s.now, s.cfg.Debounce, e.at)
			at = e.at
		} else {
			e.at, e.limit = min(e.at, at), min(e.limit, at)
		}
	}
	urgent := before
	if priority == Normal {
		urgent = min(before, at)
	}
	switch {
	case e.phase == waiting:
		e.rank(urgent, e.at)
		if e.due() != due {
			s.unplace(e)
			s.place(e)
		}
	case e.running:
		e.rank(urgent, s.now)
	case urgent == before:
	case urgent > s.now: // it keeps its place
		s.stopRise(e)
		s.setRise(e, urgent)
	default:
		s.unplace(e)
		e.rises = urgent
		s.place(e)
	}
}

// Delay prevents a key from being handed out before a time, whatever is requested meanwhile; no request is lost. It does not affect a run
// that has been handed out. A later call of Delay for the key replaces an earlier one; a time in the past, or the zero time, removes the
// delay. A distant time is clamped to MaxDelay. Delay is O(log n) in the number of timers, and advances the scheduler to now.
func (s *Scheduler[K, M]) Delay(now time.Time, key K, until time.Time) {
	s.Advance(now)
	e := s.entry(key)
	delay := s.clamp(until)
	if delay == s.now {
		delay = noDelay
	}
	if e.phase == ready && delay == noDelay {
		return // nothing delays it, and it keeps its position in the queue
	}
	s.unplace(e)
	e.delay = delay
	s.place(e)
}

// Forget removes the pending request of a key, if it has one; a run that has been handed out is not affected, nor is a delay. It is O(1), or
// O(log n) if a timer is removed.
func (s *Scheduler[K, M]) Forget(key K) {
	e, known := s.entries[key]
	if !known || !e.pending {
		return
	}
	s.unplace(e)
	e.pending = false
	e.clear()
	s.place(e)
}

// Advance makes every request ready that is due at now, the earliest first. It costs O(log n) for each, and O(1) if there is none. The
// owner must call it in every turn, even if nothing can be started; otherwise NextAt would remain in the past.
func (s *Scheduler[K, M]) Advance(now time.Time) {
	s.now = s.instant(now)
	for len(s.timers) > 0 && s.timers[0].timer <= s.now {
		e := s.timers[0]
		s.unplace(e)
		s.place(e)
	}
}

// Pop hands out the next ready key and marks it as running. It returns false if no key is ready. The key is not handed out again before
// Done (rule 1), and a request for it that comes meanwhile leads to exactly one later run (rule 2). Pop advances the scheduler to now and
// is otherwise O(1), however many keys are running or blocked.
func (s *Scheduler[K, M]) Pop(now time.Time) (Item[K, M], bool) {
	s.Advance(now)
	class, ok := s.pick()
	if !ok {
		return Item[K, M]{}, false
	}
	e := s.ready[class].head
	s.unplace(e)
	item := Item[K, M]{Key: e.key, Msg: e.msg, Priority: e.priority, ReadyAt: s.time(e.due())}
	e.pending, e.debounced, e.delay, e.rises = false, false, noDelay, never
	e.running, e.started = true, s.now
	s.running.push(e)
	return item, true
}

// pick returns the class whose turn it is: the highest that has a ready entry, unless a lower one has been passed over too often.
func (s *Scheduler[K, M]) pick() (class int, ok bool) {
	class = -1
	for i := range s.ready {
		q := &s.ready[i]
		if q.len == 0 {
			q.passed = 0
			continue
		}
		if class < 0 || s.ready[class].passed < MaxPassedOver {
			class = i
		}
	}
	if class < 0 {
		return 0, false
	}
	for i := range class {
		if s.ready[i].len > 0 {
			s.ready[i].passed++
		}
	}
	s.ready[class].passed = 0
	return class, true
}

// Done marks the run of a key as ended. A request that is due and was blocked by the run joins the end of its class. Done ignores a key
// that is not running.
func (s *Scheduler[K, M]) Done(key K) {
	e, known := s.entries[key]
	if !known || !e.running {
		return
	}
	s.running.remove(e)
	if e.phase == waiting { // its timer is unaffected
		e.running = false
		return
	}
	s.unplace(e)
	e.running = false
	s.place(e)
}

// Finish is Done for a run that ended at a time, with what is to happen next: the delay of the key begins with the end of the run, and the
// requeue is a request.
func (s *Scheduler[K, M]) Finish(now time.Time, key K, ended time.Time, next Next[M]) {
	if next.Delay > 0 {
		s.Delay(now, key, ended.Add(next.Delay))
	}
	s.Done(key)
	if next.Requeue {
		s.Schedule(now, Request[K, M]{Key: key, Msg: next.Msg, At: ended.Add(next.After), Priority: next.Priority})
	}
}
