package queue

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// HookState is what a Hook has to do and did. The times and numbers are of one
// moment.
type HookState struct {
	// Waiting is how many objects have changes that wait, Failing how many of
	// them could not be mapped at the last try. Each keeps up to MaxChanges+1
	// states of its object in memory, also of one that is deleted meanwhile.
	Waiting, Failing int
	// FailingSince is when Failing was last zero, LastError what went wrong last,
	// with the object in it. Both are zero while Failing is.
	FailingSince time.Time
	LastError    error
	// Handled counts changes that are done with, and Dropped those of them that
	// the guest's filter did not keep. Merged counts those that had to be merged
	// into another (MaxChanges).
	Handled, Dropped, Merged uint64
	// MapErrors and FilterErrors count failed calls.
	MapErrors, FilterErrors uint64
	// FilterError is what went wrong last in filter; nil if nothing ever did.
	FilterError error
}

// State returns the present state. It never blocks.
func (h *Hook) State() HookState {
	h.pending.mu.Lock()
	defer h.pending.mu.Unlock()
	st := h.pending.state
	st.Waiting = len(h.pending.objects)
	return st
}

// change is one change that waits for the guest.
type change struct {
	ev       reflector.Event
	filter   bool // the guest decides whether it is kept
	barriers []*barrier
}

// barrier is what one call of Mapped waits for.
type barrier struct {
	left int // objects with changes that are not handled
	open chan struct{}
}

// object has the changes of one object that wait, the oldest first. An object
// without changes is not kept.
type object struct {
	changes []change
	tries   int  // of the first change
	busy    bool // the first change is with the guest
}

// pending keeps the changes that wait for the guest: the scheduler decides
// which object is next, and changes of one object stay in their order. It is
// shared by the watch that adds and the Hook that takes.
type pending struct {
	mu      sync.Mutex
	objects map[abi.Key]*object                     // guarded by mu
	order   *scheduler.Scheduler[abi.Key, struct{}] // guarded by mu
	state   HookState                               // guarded by mu; Waiting is not kept
}

func newPending() *pending {
	return &pending{objects: map[abi.Key]*object{}, order: scheduler.New[abi.Key](scheduler.Config[struct{}]{})}
}

// add puts a change behind the others of its object.
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
	// One that is with the guest is scheduled when it is back, and one that waits
	// for another try has its time.
	if !o.busy && o.tries == 0 {
		p.schedule(now, key, o, now)
	}
}

// merge makes one change of two in a row: from what the first began with to
// what the second led to, so that no difference is lost between one change and
// the next.
func (c *change) merge(next change) {
	c.filter = false // the guest may have seen a state in the middle: it must see this one
	c.ev.Type = next.ev.Type
	if c.ev.New = next.ev.New; next.ev.Type != reflector.Deleted {
		return
	}
	if c.ev.New = nil; c.ev.Old == nil { // it came and went
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

// next returns the change that is to be handled now; done must follow.
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

// nextAt returns when next has something; false where nothing waits.
func (p *pending) nextAt() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order.NextAt()
}

// done says how handling the change of next went: ch is what it has become.
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
			p.state.FailingSince, p.state.LastError = time.Time{}, nil
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

// failed has the first change of an object tried again.
func (p *pending) failed(now time.Time, key abi.Key, o *object, err error) {
	if o.tries++; o.tries == 1 {
		if p.state.Failing++; p.state.Failing == 1 {
			p.state.FailingSince = now
		}
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

// putBack leaves the change of next as it was: Run ends.
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
		p.state.FilterError = err
	case !keep:
		p.state.Dropped++
	}
}

// barrier returns a channel that is closed when all that waits now is handled
// or has failed too often.
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

// pass lets the barriers go on that wait for this change.
func (c *change) pass() {
	for _, b := range c.barriers {
		if b.left--; b.left == 0 {
			close(b.open)
		}
	}
	c.barriers = nil
}
