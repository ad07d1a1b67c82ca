// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Participant runs a part of its objects. It is implemented by controllers.
type Participant interface {
	// Name returns the name of the controller, the same in all replicas.
	Name() string
	// Warm starts the watches of a slot and returns when they have synced.
	Warm(ctx context.Context, slot int) error
	// Open waits until the cache includes the writes of the previous owner, and then runs the objects of the slot. If left is nil, those
	// writes are unknown, and were made before gained.Since.
	Open(ctx context.Context, slot int, gained Gained, left *Handover) error
	// Close prevents new runs of the slot, and returns when the last has ended.
	Close(ctx context.Context, slot int) Handover
	// Cool stops the watches of a slot.
	Cool(slot int)
	// Spent yields the total computing time of the runs of each slot.
	Spent(yield func(slot int, d time.Duration))
}

// Gained describes how a replica got a slot.
type Gained struct {
	// Since is when the replica learned that it owns the slot; the previous owner wrote earlier.
	Since time.Time
	// Heard is a version of the API server at which the previous owner was alive; it is empty if unknown.
	Heard string
}

// part is a Participant and its progress with each slot.
type part struct {
	Participant

	ctx   context.Context //nolint:containedctx // ends with the controller
	slots [slots.Max]struct {
		sync.Mutex
		at phase // guarded by the mutex: idle, warm or open
	}
}

// Join adds a controller. Slots that are already warm or open are warmed and opened for it, too. The controller must have ended before
// leave is called.
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

// wants returns the phase that the parts should reach: idle, warm or open.
func (m *Member) wants(slot int) phase {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.want[slot]
}

// catchUp brings a slot of a controller that was added later to the phase of the others.
func (p *part) catchUp(ctx context.Context, m *Member, slot int) {
	p.slots[slot].Lock()
	defer p.slots[slot].Unlock()
	gained := Gained{Since: time.Now()}
	if m.wants(slot) >= warm {
		p.warm(ctx, slot)
	}
	if m.wants(slot) == open {
		p.open(ctx, slot, gained, nil)
	}
}

// warm makes a slot warm. The caller must hold its mutex. It fails only if ctx has ended.
func (p *part) warm(ctx context.Context, slot int) {
	if p.slots[slot].at == idle && p.Warm(ctx, slot) == nil {
		p.slots[slot].at = warm
	}
}

func (p *part) open(ctx context.Context, slot int, gained Gained, left *Handover) {
	p.warm(ctx, slot)
	if p.slots[slot].at == warm && p.Open(ctx, slot, gained, left) == nil {
		p.slots[slot].at = open
	}
}

// done is the log text for each completed effect.
var done = map[Kind]string{Warm: "slot is warm", Open: "slot is open", Close: "slot is closed", Cool: "slot is no longer watched"}

// maxLists is the maximum number of slots that are listed concurrently. For each, the API server must go through all objects, and it must
// also answer the renewals of leases.
const maxLists = 3

// startSlot carries out an effect on a slot, concurrently for all parts.
func (l *loop) startSlot(e Effect) {
	wants := map[Kind]phase{Warm: warm, Open: open, Close: warm, Cool: idle}
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

// closeAll interrupts all runs of the slots, and returns when they have ended. The slots are still watched.
func (m *Member) closeAll() {
	m.mu.Lock()
	for i := range m.want {
		m.want[i] = min(m.want[i], warm)
	}
	parts := slices.Clone(m.parts)
	m.mu.Unlock()
	at, cancel := context.WithCancel(context.Background())
	cancel()
	var wg sync.WaitGroup
	for _, p := range parts {
		for slot := range p.slots {
			wg.Go(func() {
				p.slots[slot].Lock()
				defer p.slots[slot].Unlock()
				if p.slots[slot].at == open {
					p.Close(at, slot)
					p.slots[slot].at = warm
				}
			})
		}
	}
	wg.Wait()
}

// carryOut carries out an effect for one part. The caller must hold the slot's mutex.
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
		p.open(ctx, e.Slot, e.Gained, left)
	case Close:
		if *at == open {
			h := p.Close(ctx, e.Slot)
			*at = warm
			return &h
		}
	case Cool:
		if *at == warm {
			p.Cool(e.Slot)
			*at = idle
		}
	case Renew, Fence, Commit, Forget: // not effects on a slot
	}
	return nil
}
