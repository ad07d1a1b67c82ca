// Package scheduler decides when a key is handed out: delay, deduplication, debounce, order, and never the same key twice at once.
//
// A Scheduler is a pure data structure. It starts no goroutine, takes no lock, reads no clock and does no I/O: time comes in as an
// argument, decisions come out as return values. One goroutine owns it (package runner has the loop that does).
//
//	s := scheduler.New[string, string](scheduler.Config[string]{})
//	s.Schedule(now, scheduler.Request[string, string]{Key: "default/web", Msg: "changed"})
//	for item, ok := s.Pop(now); ok; item, ok = s.Pop(now) {
//		// run item.Key ...
//		s.Done(item.Key)
//	}
//
// # What a key goes through
//
// A key that the scheduler knows has at most one pending request, and independently of that it runs or it does not:
//
//	(unknown) --Schedule, due later--> waiting: for its timer; goes on to ready when Advance is notified a time that is not before it
//	(unknown) --Schedule, due now----> ready:   for Pop; a key that runs is blocked here, and nothing waits behind it
//	ready     --Pop------------------> running: until Done; a request that comes meanwhile is pending as above
//	running   --Done-----------------> unknown, or, with a request pending, where that request is
//	any       --Hold-----------------> as it was, but a pending request waits until the hold has passed; Lookup says which
//
// # Order
//
// Requests are handed out first in, first out within a priority, in the order in which they became due; one that was blocked because
// its key was running joins the end when the key is done. The higher priority goes first, but a lower one is never starved:
// see MaxPassedOver.
package scheduler

import "time"

// Scheduler holds at most one pending request for each key and hands keys out when they are due and free. Make one with New.
// It is not safe for use by several goroutines.
type Scheduler[K comparable, M any] struct {
	cfg     Config[M]
	base    time.Time               // instant 0: the first time that the scheduler was told
	now     instant                 // the last time that it was told
	entries map[K]*entry[K, M]      // every key that is pending, running or held
	timers  timers[K, M]            // pending and not due, and what is held without being pending
	parked  int                     // in timers, held, and not pending
	ready   [priorities]queue[K, M] // pending, due and free, by class
	blocked int                     // pending and due, but the key is running
	running list[K, M]              // handed out and not done
	timerNo uint64                  // number of the last timer set; keeps timers for the same time in order
	free    freeList[K, M]          // spent entries, so that a known key allocates nothing
	peak    int                     // most entries since the scheduler was last empty
}

// New returns an empty Scheduler. A Config that Validate refuses is used as if Debounce.Max were Debounce.Quiet.
func New[K comparable, M any](cfg Config[M]) *Scheduler[K, M] {
	cfg.Debounce = cfg.Debounce.withDefaults()
	return &Scheduler[K, M]{cfg: cfg, entries: make(map[K]*entry[K, M])}
}

// Schedule adds a request, or merges it into the pending request of the same key: the earlier time wins, the higher priority wins, and
// Config.Merge decides on the message (rules 2 and 3). A ready request whose priority rises goes to the end of the higher class. A request
// without a time is debounced: see Debounce.
//
// It is O(1) and does not allocate if the key is known, except where a timer is set or moved, which is O(log n) in the number of timers.
// It advances the scheduler to now.
func (s *Scheduler[K, M]) Schedule(now time.Time, req Request[K, M]) {
	s.Advance(now)
	req.Priority = req.Priority.clamp()
	at := s.clamp(req.At)
	debounced := req.At.IsZero() && s.cfg.Debounce.Quiet > 0
	e := s.entry(req.Key)
	if !e.pending {
		s.unplace(e)
		e.pending, e.debounced = true, false
		e.msg, e.priority, e.at = req.Msg, req.Priority, at
		if debounced {
			e.debounce(s.now, s.cfg.Debounce, s.now.add(MaxDelay))
		}
		s.place(e)
		return
	}
	s.merge(e, req, at)
	if e.phase != waiting {
		return
	}
	due := e.due()
	switch {
	case debounced:
		e.debounce(s.now, s.cfg.Debounce, e.at)
	default:
		e.at, e.limit = min(e.at, at), min(e.limit, at)
	}
	if e.due() != due {
		s.unplace(e)
		s.place(e)
	}
}

// merge takes the message and the priority of a request over into a pending one. at is the time of the request, without a debounce.
func (s *Scheduler[K, M]) merge(e *entry[K, M], req Request[K, M], at instant) {
	switch {
	case s.cfg.Merge != nil:
		e.msg = s.cfg.Merge(e.msg, req.Msg)
	case e.phase == waiting && at <= e.at:
		e.msg = req.Msg
	}
	if req.Priority <= e.priority {
		return
	}
	queued := e.phase == ready && !e.running
	if queued {
		s.ready[e.priority.class()].remove(e)
	}
	e.priority = req.Priority
	if queued {
		s.ready[e.priority.class()].push(e)
	}
}

// Delay keeps a key from being handed out before a time, whatever is asked of it meanwhile; nothing that is asked is lost. A run that has
// been handed out is not touched. A later Hold of the key replaces an earlier one; a time that has passed, or the zero time, lifts it. A
// far time is clamped to MaxDelay. It is O(log n) in the number of timers, and advances the scheduler to now.
func (s *Scheduler[K, M]) Delay(now time.Time, key K, until time.Time) {
	s.Advance(now)
	e := s.entry(key)
	delay := s.clamp(until)
	if delay == s.now {
		delay = noDelay
	}
	if e.phase == ready && delay == noDelay {
		return // nothing keeps it, and it has its place
	}
	s.unplace(e)
	e.delay = delay
	s.place(e)
}

// Advance makes every request ready that is due at now, the earliest first. It costs O(log n) for each, and O(1) if there is none.
// The owner calls it on every turn, also when nothing can be started: NextAt would otherwise stay in the past.
func (s *Scheduler[K, M]) Advance(now time.Time) {
	s.now = s.instant(now)
	for len(s.timers) > 0 && s.timers[0].timer <= s.now {
		e := s.timers[0]
		s.unplace(e)
		s.place(e)
	}
}

// Pop hands out the next ready key and marks it as running; false if there is none. The key is not handed out again before Done
// (rule 1), and a request for it that comes meanwhile leads to exactly one later run (rule 2). It advances the scheduler to now and is
// O(1) beyond that, however many keys are running or blocked.
func (s *Scheduler[K, M]) Pop(now time.Time) (Item[K, M], bool) {
	s.Advance(now)
	class, ok := s.pick()
	if !ok {
		return Item[K, M]{}, false
	}
	e := s.ready[class].head
	s.ready[class].remove(e)
	item := Item[K, M]{Key: e.key, Msg: e.msg, Priority: e.priority, ReadyAt: s.time(e.due())}
	e.phase, e.pending, e.debounced, e.delay = idle, false, false, noDelay
	e.running, e.started = true, s.now
	s.running.push(e)
	return item, true
}

// pick returns the class whose turn it is: the highest that has something ready, unless a lower one has been passed over too often.
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

// Done says that the run of a key has ended. A request that is due and was blocked by the run joins the end of its class.
// A key that is not running is ignored.
func (s *Scheduler[K, M]) Done(key K) {
	e, known := s.entries[key]
	if !known || !e.running {
		return
	}
	s.running.remove(e)
	if e.phase == waiting { // its timer goes on
		e.running = false
		return
	}
	s.unplace(e)
	e.running = false
	s.place(e)
}
