package scheduler

import (
	"container/heap"
	"time"
)

// maxFree is how many spent entries are kept. More than that are only needed in bursts, and a burst should give its memory back.
const maxFree = 1024

// phase says where the pending request of an entry is.
type phase uint8

const (
	idle    phase = iota // no request is pending: the entry is there because its key is running
	waiting              // in timers, for its time
	ready                // in the list of its class, for Pop; or, if the key is running, in no list, for Done
)

// entry is all that the scheduler knows of one key. An entry is in Scheduler.entries as long as a request is pending or the key runs.
type entry[K comparable, M any] struct {
	key     K
	running bool

	// The pending request; not valid if phase is idle.
	phase    phase
	priority Priority
	msg      M
	at       time.Time // when the request is or was due
	timerNo  uint64    // order among timers for the same time; valid while waiting
	timerPos int       // index in timers; valid while waiting

	// Neighbours in the one list that the entry is in: running, the ready list of its class, or the free list.
	prev, next *entry[K, M]
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

// release forgets a key that has no pending request and does not run.
func (s *Scheduler[K, M]) release(e *entry[K, M]) {
	delete(s.entries, e.key)
	s.free.put(e)
	if len(s.entries) == 0 && s.peak > maxFree {
		// Go's maps and slices never shrink by themselves: start afresh after a burst.
		s.entries, s.timers, s.peak = make(map[K]*entry[K, M]), nil, 0
	}
}

// list is a doubly linked list of entries, first in, first out.
type list[K comparable, M any] struct {
	head, tail *entry[K, M]
	len        int
}

// push appends an entry.
func (l *list[K, M]) push(e *entry[K, M]) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.len++
}

// remove takes an entry out, wherever it is in the list.
func (l *list[K, M]) remove(e *entry[K, M]) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// queue holds the ready entries of one class.
type queue[K comparable, M any] struct {
	list[K, M]
	passed int // how many entries of higher classes were handed out since this class was last served or empty
}

// freeList keeps up to maxFree spent entries for reuse.
type freeList[K comparable, M any] struct {
	head *entry[K, M]
	len  int
}

// get returns an empty entry.
func (f *freeList[K, M]) get() *entry[K, M] {
	e := f.head
	if e == nil {
		return &entry[K, M]{}
	}
	f.head, e.next = e.next, nil
	f.len--
	return e
}

// put takes a spent entry that is in no list.
func (f *freeList[K, M]) put(e *entry[K, M]) {
	if f.len == maxFree {
		return
	}
	*e = entry[K, M]{next: f.head}
	f.head = e
	f.len++
}

// timers is a heap of the waiting entries: the earliest time first, and of equal times the one that was set first.
type timers[K comparable, M any] []*entry[K, M]

func (t *timers[K, M]) push(e *entry[K, M])   { heap.Push(t, e) }
func (t *timers[K, M]) remove(e *entry[K, M]) { heap.Remove(t, e.timerPos) }

// Len implements heap.Interface.
func (t timers[K, M]) Len() int { return len(t) }

// Less implements heap.Interface.
func (t timers[K, M]) Less(i, j int) bool {
	if c := t[i].at.Compare(t[j].at); c != 0 {
		return c < 0
	}
	return t[i].timerNo < t[j].timerNo
}

// Swap implements heap.Interface.
func (t timers[K, M]) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timerPos, t[j].timerPos = i, j
}

// Push implements heap.Interface.
func (t *timers[K, M]) Push(x any) {
	e := x.(*entry[K, M])
	e.timerPos = len(*t)
	*t = append(*t, e)
}

// Pop implements heap.Interface.
func (t *timers[K, M]) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return e
}
