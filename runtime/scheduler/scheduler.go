// Package scheduler decides when a key is handed out: delay, deduplication, order, and never the same key twice at once.
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
//	(unknown) --Schedule, due later--> waiting: for its timer; goes on to ready when Advance is told a time that is not before it
//	(unknown) --Schedule, due now----> ready:   for Pop; a key that runs is held back here, and nothing waits behind it
//	ready     --Pop------------------> running: until Done; a request that comes meanwhile is pending as above
//	running   --Done-----------------> unknown, or, with a request pending, where that request is
//
// # Order
//
// Requests are handed out first in, first out within a priority, in the order in which they became due; one that was held back because
// its key was running joins the end when the key is done. The higher priority goes first, but a lower one is never starved:
// see MaxPassedOver.
package scheduler

import "time"

// MaxDelay is the longest delay: a request that asks for a later time is due MaxDelay after the time it was scheduled at (rule 8 of
// ARCHITECTURE.md). kube-rs clamps to six months too; a run that comes early is harmless, a timer that overflows is not.
const MaxDelay = 180 * 24 * time.Hour

// MaxPassedOver is how many requests of higher priority are handed out in a row while a lower priority has one ready; the next one
// is then the oldest of the lower priority (rule 4: waiting raises priority). Both sides of it are bounds:
//
//   - A Low request with n Low requests before it is handed out at the latest by the (n+1)*(MaxPassedOver+1)th Pop, even if Normal
//     requests never run dry.
//   - While Normal requests are ready, at least MaxPassedOver of any MaxPassedOver+1 pops are Normal, however long the Low ones have
//     been waiting. A first listing of 100,000 objects therefore costs the objects that change one turn in nine, not their place.
//
// It counts turns, not seconds, because a bound in seconds would give the whole machine to an old listing once that bound has passed.
const MaxPassedOver = 8

// Priority is the class that a request competes in. The zero value is Normal; a value out of range counts as the nearest one.
type Priority int8

// The priorities, lowest first.
const (
	// Low is for what nobody waits for: the first listing and resyncs.
	Low Priority = iota - 1
	// Normal is for changes and requeues.
	Normal
)

// priorities is the number of Priority values.
const priorities = int(Normal-Low) + 1

// String returns the priority as a lower-case word.
func (p Priority) String() string {
	if p.clamp() == Low {
		return "low"
	}
	return "normal"
}

// clamp returns the nearest priority that exists.
func (p Priority) clamp() Priority { return min(max(p, Low), Normal) }

// class returns the index of a clamped priority among the ready queues.
func (p Priority) class() int { return int(p - Low) }

// Request asks for one run of a key.
type Request[K comparable, M any] struct {
	// Key is what is run; two requests with equal keys become one while neither has been handed out.
	Key K
	// Msg is handed out with the key; it takes no part in deduplication.
	Msg M
	// At is the earliest time of the run. The zero time, and any time in the past, is now; a far one is clamped to MaxDelay.
	At time.Time
	// Priority is the class that the request competes in.
	Priority Priority
}

// Item is a key that is to be run now.
type Item[K comparable, M any] struct {
	Key      K
	Msg      M
	Priority Priority
	// ReadyAt is the time from which the item was due; the time of the Pop minus ReadyAt is what it waited for its turn.
	ReadyAt time.Time
}

// Config says how a Scheduler behaves. The zero value works.
type Config[M any] struct {
	// Merge returns the message of a pending request that another request for the same key has met; pending came first. It is called
	// in the order of the Schedule calls, whichever of the two is due sooner. If nil, the message of the soonest request is kept and, of two
	// for the same later time, the newer one (as in kube-rs).
	Merge func(pending, next M) M
}

// Scheduler holds at most one pending request for each key and hands keys out when they are due and free. Make one with New.
// It is not safe for use by several goroutines.
type Scheduler[K comparable, M any] struct {
	cfg     Config[M]
	entries map[K]*entry[K, M]      // every key that is pending or running
	timers  timers[K, M]            // pending and not due
	ready   [priorities]queue[K, M] // pending, due and free, by class
	running list[K, M]              // handed out and not done
	held    int                     // pending and due, but the key is running
	timerNo uint64                  // number of the last timer set; keeps timers for the same time in order
	free    freeList[K, M]          // spent entries, so that a known key allocates nothing
	peak    int                     // most entries since the scheduler was last empty
}

// New returns an empty Scheduler.
func New[K comparable, M any](cfg Config[M]) *Scheduler[K, M] {
	return &Scheduler[K, M]{cfg: cfg, entries: make(map[K]*entry[K, M])}
}

// Schedule adds a request, or merges it into the pending request of the same key: the earlier time wins, the higher priority wins, and
// Config.Merge decides on the message (rules 2 and 3). A ready request whose priority rises goes to the end of the higher class.
//
// It is O(1) and does not allocate if the key is known, except where a timer is set or moved, which is O(log n) in the number of timers.
// It advances the scheduler to now.
func (s *Scheduler[K, M]) Schedule(now time.Time, req Request[K, M]) {
	s.Advance(now)
	req.Priority = req.Priority.clamp()
	at := req.At
	if limit := now.Add(MaxDelay); at.After(limit) {
		at = limit
	}
	if at.Before(now) {
		at = now
	}
	e := s.entry(req.Key)
	if e.phase == idle {
		e.msg, e.priority, e.at = req.Msg, req.Priority, at
		s.place(e, now)
		return
	}
	s.merge(e, req, at)
	if e.phase == waiting && at.Before(e.at) {
		s.timers.remove(e)
		e.at = at
		s.place(e, now)
	}
}

// merge takes the message and the priority of a request over into a pending one. at is the time that the request is due at.
func (s *Scheduler[K, M]) merge(e *entry[K, M], req Request[K, M], at time.Time) {
	switch {
	case s.cfg.Merge != nil:
		e.msg = s.cfg.Merge(e.msg, req.Msg)
	case e.phase == waiting && !at.After(e.at):
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

// place puts an entry that has a request and no place where it belongs at the time now.
func (s *Scheduler[K, M]) place(e *entry[K, M], now time.Time) {
	if e.at.After(now) {
		s.timerNo++
		e.phase, e.timerNo = waiting, s.timerNo
		s.timers.push(e)
		return
	}
	e.phase = ready
	if e.running {
		s.held++
		return
	}
	s.ready[e.priority.class()].push(e)
}

// Advance makes every request ready that is due at now, the earliest first. It costs O(log n) for each, and O(1) if there is none.
// The owner calls it on every turn, also when nothing can be started: NextAt would otherwise stay in the past.
func (s *Scheduler[K, M]) Advance(now time.Time) {
	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		e := s.timers[0]
		s.timers.remove(e)
		s.place(e, now)
	}
}

// Pop hands out the next ready key and marks it as running; false if there is none. The key is not handed out again before Done
// (rule 1), and a request for it that comes meanwhile leads to exactly one later run (rule 2). It advances the scheduler to now and is
// O(1) beyond that, however many keys are running or held back.
func (s *Scheduler[K, M]) Pop(now time.Time) (Item[K, M], bool) {
	s.Advance(now)
	class, ok := s.pick()
	if !ok {
		return Item[K, M]{}, false
	}
	e := s.ready[class].head
	s.ready[class].remove(e)
	item := Item[K, M]{Key: e.key, Msg: e.msg, Priority: e.priority, ReadyAt: e.at}
	e.phase, e.running = idle, true
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

// Done says that the run of a key has ended. A request that is due and was held back by the run joins the end of its class.
// A key that is not running is ignored.
func (s *Scheduler[K, M]) Done(key K) {
	e, known := s.entries[key]
	if !known || !e.running {
		return
	}
	s.running.remove(e)
	e.running = false
	switch e.phase {
	case idle:
		s.release(e)
	case ready:
		s.held--
		s.ready[e.priority.class()].push(e)
	case waiting: // its timer goes on
	}
}

// Forget drops the pending request of a key, if it has one; a run that has been handed out is not touched. It is O(1), or O(log n) if
// a timer is taken away.
func (s *Scheduler[K, M]) Forget(key K) {
	e, known := s.entries[key]
	if !known {
		return
	}
	switch {
	case e.phase == waiting:
		s.timers.remove(e)
	case e.phase == ready && e.running:
		s.held--
	case e.phase == ready:
		s.ready[e.priority.class()].remove(e)
	}
	e.phase = idle
	if !e.running {
		s.release(e)
	}
}
