package shard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Participant runs a part of its objects: a controller.
type Participant interface {
	// Name is that of the controller, the same in all replicas.
	Name() string
	// Warm starts the watches of a slot and returns when they have synced.
	Warm(ctx context.Context, slot int) error
	// Open waits until the cache has what the owner before has written, and lets the
	// objects of the slot run. Nil: it is not known what that was; it was written before
	// the time since.
	Open(ctx context.Context, slot int, since time.Time, left *Handover) error
	// Close lets no more runs of the slot begin and returns when the last has ended.
	Close(ctx context.Context, slot int) Handover
	// Drop stops the watches of a slot.
	Drop(slot int)
	// Spent yields what the runs of each slot have cost until now.
	Spent(yield func(slot int, d time.Duration))
}

// part is a Participant and how far it is with each slot.
type part struct {
	Participant

	ctx   context.Context //nolint:containedctx // ends with the controller
	slots [slots.Max]struct {
		sync.Mutex
		at phase // guarded by the mutex: idle, warm or open
	}
}

// Join makes a controller take part, until leave is called, before which it must have
// ended. What is open or warm already becomes so for it, too.
func (m *Member) Join(ctx context.Context, p Participant) (leave func()) {
	added := &part{Participant: p, ctx: ctx}
	m.mu.Lock()
	m.parts = append(m.parts, added)
	m.mu.Unlock()
	var wg sync.WaitGroup
	for slot := range slots.Max {
		if m.wants(slot) > idle {
			wg.Go(func() { added.catchUp(ctx, m, slot) })
		}
	}
	return func() {
		m.mu.Lock()
		m.parts = slices.DeleteFunc(m.parts, func(o *part) bool { return o == added })
		m.mu.Unlock()
		wg.Wait()
	}
}

// wants returns what the core wants of the parts: idle, warm or open.
func (m *Member) wants(slot int) phase {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.want[slot]
}

// catchUp brings a slot of a controller that came late to where the others are.
func (p *part) catchUp(ctx context.Context, m *Member, slot int) {
	p.slots[slot].Lock()
	defer p.slots[slot].Unlock()
	since := time.Now()
	if m.wants(slot) >= warm {
		p.warm(ctx, slot)
	}
	if m.wants(slot) == open {
		p.open(ctx, slot, since, nil)
	}
}

// warm makes a slot warm; the caller holds its mutex. An error is only that ctx has
// ended.
func (p *part) warm(ctx context.Context, slot int) {
	if p.slots[slot].at == idle && p.Warm(ctx, slot) == nil {
		p.slots[slot].at = warm
	}
}

func (p *part) open(ctx context.Context, slot int, since time.Time, left *Handover) {
	p.warm(ctx, slot)
	if p.slots[slot].at == warm && p.Open(ctx, slot, since, left) == nil {
		p.slots[slot].at = open
	}
}

// done says for the log what was done with a slot.
var done = map[Kind]string{Warm: "slot is warm", Open: "slot is open", Close: "slot is closed", Drop: "slot was dropped"}

// maxLists is how many slots are listed at a time. The API server looks at all objects
// for each of them, and has to answer the renewals of leases, too.
const maxLists = 3

// startSlot carries out an effect on a slot, with all parts at once.
func (l *loop) startSlot(e Effect) {
	wants := map[Kind]phase{Warm: warm, Open: open, Close: warm, Drop: idle}
	l.mu.Lock()
	l.want[e.Slot] = wants[e.Kind]
	parts := slices.Clone(l.parts)
	l.mu.Unlock()
	left := make([]*Handover, len(parts))
	if e.Kind == Close {
		l.cfg.Logger.Debug("shards: slot is closing", "slot", e.Slot)
	}
	l.wg.Go(func() {
		if e.Kind == Warm || e.Kind == Open && e.Handover == nil {
			select {
			case l.lists <- struct{}{}:
				defer func() { <-l.lists }()
			case <-l.ctx.Done():
				return
			}
		}
		var wg sync.WaitGroup
		for i, p := range parts {
			wg.Go(func() {
				p.slots[e.Slot].Lock()
				defer p.slots[e.Slot].Unlock()
				left[i] = p.carryOut(l.ctx, e)
			})
		}
		wg.Wait()
		l.cfg.Logger.Debug("shards: "+done[e.Kind], "slot", e.Slot)
		r := Result{Handover: map[string]Handover{}}
		for i, p := range parts {
			if left[i] != nil {
				r.Handover[p.Name()] = *left[i]
			}
		}
		l.done(e, r)
	})
}

// carryOut carries out an effect; the caller holds the slot's mutex.
func (p *part) carryOut(loop context.Context, e Effect) *Handover {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	defer context.AfterFunc(loop, cancel)()
	at := &p.slots[e.Slot].at
	switch e.Kind {
	case Warm:
		p.warm(ctx, e.Slot)
	case Open:
		var left *Handover
		if h, ok := e.Handover[p.Name()]; ok {
			left = &h
		}
		p.open(ctx, e.Slot, e.Since, left)
	case Close:
		if *at == open {
			h := p.Close(ctx, e.Slot)
			*at = warm
			return &h
		}
	case Drop:
		if *at == warm {
			p.Drop(e.Slot)
			*at = idle
		}
	case Renew, Fence, Commit, Forget: // not of a slot
	}
	return nil
}
