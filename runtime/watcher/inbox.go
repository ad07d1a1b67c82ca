// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

const (
	// maxStates is the maximum number of states of one object in an inbox.
	maxStates = 8
	// reuseInbox is the size up to which an inbox reuses its memory for the next events.
	reuseInbox = 1024
)

// inbox holds the events that a subscription has not handled yet. The loop of the watch adds them and never waits (rule 16);
// Subscription.Run takes them out.
//
// The size is bounded by the number of objects, not of events: an intermediate state is skipped, unless a mapper might need it.
type inbox struct {
	synced  chan struct{} // closed when the content of the store has been handled
	wake    chan struct{} // has one element if there may be something to take
	waiting atomic.Int64  // events not yet handled

	mu     sync.Mutex
	listed []*reflector.Object         // guarded by mu; the content of the store, which precedes all events
	joined bool                        // guarded by mu; listed was set
	events []pending                   // guarded by mu; ordered by the first event of each object
	index  map[reflector.ObjectRef]int // guarded by mu; position of an object in events
}

// pending holds the waiting events of one object, in order.
type pending struct {
	first reflector.Event
	more  []reflector.Event
}

func newInbox() *inbox {
	return &inbox{
		synced: make(chan struct{}), wake: make(chan struct{}, 1),
		index: map[reflector.ObjectRef]int{},
	}
}

// join adds the content of the store. Events follow it.
func (b *inbox) join(content []*reflector.Object) {
	b.mu.Lock()
	b.listed, b.joined = content, true
	b.mu.Unlock()
	b.waiting.Add(int64(len(content)))
	b.wakeUp()
}

// put adds an event.
func (b *inbox) put(ev reflector.Event) {
	b.mu.Lock()
	ref := ev.Ref()
	i, known := b.index[ref]
	if !known {
		i = len(b.events)
		b.index[ref] = i
		b.events = append(b.events, pending{first: ev})
	}
	merged := known && b.events[i].add(ev)
	b.mu.Unlock()
	if !merged {
		b.waiting.Add(1)
		b.wakeUp()
	}
}

func (b *inbox) wakeUp() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// add appends an event or merges it with the last.
func (p *pending) add(ev reflector.Event) (merged bool) {
	last := &p.first
	if len(p.more) > 0 {
		last = &p.more[len(p.more)-1]
	}
	if follows(*last, ev) && (unseen(*last, ev) || len(p.more)+1 >= maxStates) {
		last.Type, last.New = ev.Type, ev.New
		return true
	}
	p.more = append(p.more, ev)
	return false
}

// follows reports whether both are consecutive changes of one object, with one uid.
func follows(a, b reflector.Event) bool {
	return a.Type != reflector.Deleted && b.Type != reflector.Deleted && b.Old == a.New
}

// unseen reports whether the state between two changes may be skipped, because a mapper would request the same as for the state before or
// after it.
func unseen(a, b reflector.Event) bool {
	return a.New.MapsAlike(b.New) || a.Old != nil && a.New.MapsAlike(a.Old)
}

// take empties the inbox. It reuses the memory of spare, the previous batch, for the next events.
func (b *inbox) take(spare batch) batch {
	clear(spare.events) // release the objects
	clear(spare.index)
	if cap(spare.events) > reuseInbox || spare.index == nil {
		spare = batch{index: map[reflector.ObjectRef]int{}}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := batch{b.listed, b.joined, b.events, b.index}
	b.listed, b.joined, b.events, b.index = nil, false, spare.events[:0], spare.index
	return taken
}

// batch is the content that take removed from an inbox.
type batch struct {
	listed []*reflector.Object
	joined bool // the batch includes the content of the store, even if that is empty
	events []pending
	index  map[reflector.ObjectRef]int
}

// deliver passes all events to handler until ctx ends.
func (b *inbox) deliver(ctx context.Context, handler Handler) {
	handle := func(ev reflector.Event) bool {
		if ctx.Err() != nil {
			return false
		}
		handler(ctx, ev)
		b.waiting.Add(-1)
		return true
	}
	for taken := (batch{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		taken = b.take(taken)
		if !taken.each(handle) || ctx.Err() != nil {
			return
		}
		if taken.joined {
			close(b.synced)
		}
		if !taken.eachChange(handle) {
			return
		}
	}
}

// each calls handle with the content of the store until handle returns false.
func (t *batch) each(handle func(reflector.Event) bool) bool {
	for _, o := range t.listed {
		if !handle(reflector.Event{Type: reflector.Listed, New: o}) {
			return false
		}
	}
	t.listed = nil
	return true
}

// eachChange calls handle with the events until handle returns false.
func (t *batch) eachChange(handle func(reflector.Event) bool) bool {
	for _, p := range t.events {
		if !handle(p.first) {
			return false
		}
		for _, ev := range p.more {
			if !handle(ev) {
				return false
			}
		}
	}
	return true
}
