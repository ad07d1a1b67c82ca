// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// HookState is a consistent snapshot of the state and counters of a Hook.
type HookState struct {
	// Waiting is the number of objects with waiting changes; Failing is the number of objects whose last attempt to map failed. Each
	// waiting object holds up to MaxChanges+1 states in memory, even if it has been deleted meanwhile.
	Waiting, Failing int
	// LastError is the last error and names the object. It is nil while Failing is zero.
	LastError error
	// Handled counts completed changes, and Dropped those that the guest's filter rejected. Merged counts changes that were merged into
	// another because of MaxChanges.
	Handled, Dropped, Merged uint64
	// MapErrors and FilterErrors count failed calls.
	MapErrors, FilterErrors uint64
}

// State returns the current state. It never blocks.
func (h *Hook) State() HookState {
	h.pending.mu.Lock()
	defer h.pending.mu.Unlock()
	st := h.pending.state
	st.Waiting = len(h.pending.objects)
	return st
}

// change is a change that waits for the guest.
type change struct {
	ev       reflector.Event
	filter   bool // the guest's filter is called for the change
	barriers []*barrier
}

// barrier is the state of one call of Mapped.
type barrier struct {
	left int // objects with changes that are not handled
	open chan struct{}
}

// object holds the waiting changes of one object, the oldest first. Objects without changes are removed.
type object struct {
	changes []change
	tries   int  // failed attempts for the first change
	busy    bool // the guest is handling the first change
}

// pending holds the changes that wait for the guest. The scheduler decides which object is next; changes of one object stay in order. It is
// shared by the watch, which adds changes, and the Hook, which takes them.
type pending struct {
	mu      sync.Mutex
	objects map[abi.Key]*object                     // guarded by mu
	order   *scheduler.Scheduler[abi.Key, struct{}] // guarded by mu
	state   HookState                               // guarded by mu; Waiting is not maintained
}

func newPending() *pending {
	return &pending{objects: map[abi.Key]*object{}, order: scheduler.New[abi.Key](scheduler.Config[struct{}]{})}
}

// add appends a change to those of its object.
func (p *pending) add(now time.Time, ch change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := ch.ev.Ref()
	o := p.objects[key]
	if o == nil {
		o = &object{}
		p.objects[key] = o
	}
	if last := len(o.changes) - 1; last == MaxChanges-1 {
		o.changes[last].merge(ch)
		p.state.Merged++
		p.state.Handled++
	} else {
		o.changes = append(o.changes, ch)
	}
	// A busy object is scheduled when its call returns, and one that waits for a retry has its time.
	if !o.busy && o.tries == 0 {
		p.schedule(now, key, o, now)
	}
}

// merge merges two consecutive changes into one: from the old state of the first to the new state of the second, so that no difference is
// lost between one change and the next.
func (c *change) merge(next change) {
	c.filter = false // the guest may have seen an intermediate state: it must see this one
	c.ev.Type = next.ev.Type
	if c.ev.New = next.ev.New; next.ev.Type != reflector.Deleted {
		return
	}
	if c.ev.New = nil; c.ev.Old == nil { // created and deleted
		c.ev.Old = next.ev.Old
	}
}

func (p *pending) schedule(now time.Time, key abi.Key, o *object, at time.Time) {
	priority := scheduler.Normal
	if len(o.changes) == 1 && o.changes[0].ev.Type == reflector.Listed {
		priority = scheduler.Low
	}
	p.order.Schedule(now, scheduler.Request[abi.Key, struct{}]{Key: key, At: at, Priority: priority})
}

// next returns the change to handle now. The caller must call done or putBack for it.
func (p *pending) next(now time.Time) (abi.Key, change, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	item, ok := p.order.Pop(now)
	if !ok {
		return abi.Key{}, change{}, false
	}
	o := p.objects[item.Key]
	o.busy = true
	return item.Key, o.changes[0], true
}

// nextAt returns when next will return a change, or false if nothing waits.
func (p *pending) nextAt() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order.NextAt()
}

// done completes the handling of a change that next returned; ch is that change with the decisions made so far.
func (p *pending) done(now time.Time, key abi.Key, ch change, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[key]
	o.busy = false
	p.order.Done(key)
	if err != nil {
		o.changes[0].filter = ch.filter
		p.failed(now, key, o, err)
		return
	}
	if o.tries > 0 {
		o.tries = 0
		if p.state.Failing--; p.state.Failing == 0 {
			p.state.LastError = nil
		}
	}
	p.state.Handled++
	o.changes[0].pass()
	o.changes[0] = change{}
	if o.changes = o.changes[1:]; len(o.changes) == 0 {
		delete(p.objects, key)
		return
	}
	p.schedule(now, key, o, now)
}

// failed schedules a retry of the first change of an object.
func (p *pending) failed(now time.Time, key abi.Key, o *object, err error) {
	if o.tries++; o.tries == 1 {
		p.state.Failing++
	}
	p.state.LastError = err
	p.state.MapErrors++
	if o.tries == mappedTries {
		for i := range o.changes {
			o.changes[i].pass()
		}
	}
	p.schedule(now, key, o, now.Add(hookBackoff(o.tries)))
}

// putBack undoes next, because Run ends.
func (p *pending) putBack(now time.Time, key abi.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[key]
	o.busy = false
	p.order.Done(key)
	p.schedule(now, key, o, now)
}

// filtered counts an answer of the guest's filter.
func (p *pending) filtered(keep bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.state.FilterErrors++
	case !keep:
		p.state.Dropped++
	}
}

// barrier returns a channel that is closed when every change that waits now has been handled or has failed too often.
func (p *pending) barrier() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &barrier{open: make(chan struct{})}
	for _, o := range p.objects {
		if o.tries < mappedTries {
			last := &o.changes[len(o.changes)-1]
			last.barriers = append(last.barriers, b)
			b.left++
		}
	}
	if b.left == 0 {
		close(b.open)
	}
	return b.open
}

// pass releases the barriers that wait for this change.
func (c *change) pass() {
	for _, b := range c.barriers {
		if b.left--; b.left == 0 {
			close(b.open)
		}
	}
	c.barriers = nil
}
