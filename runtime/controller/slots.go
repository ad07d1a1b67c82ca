// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Slots configures how the objects are split between replicas.
type Slots struct {
	// Count returns the number of slots. It does not change while this replica has one.
	Count func() int
	// Served reports whether the API server can select objects by slot. The error is that of ctx.
	Served func(ctx context.Context) (bool, error)
	// Gone lets each replica that knew a deleted object run it, if the previous owner is unknown.
	Gone bool
}

// SplitBy sets the field that determines the slot of an object, slots.UID or slots.Namespace. It must be called once, before the first slot
// is warm; until then, this replica runs no object.
func (c *Controller) SplitBy(field string) { c.slots.field.Store(&field) }

// errMoved is the cause of the end of a run whose object moves to another replica.
var errMoved = errors.New("another replica takes the object over")

// slotTable records which slots are open, and what runs in them.
type slotTable struct {
	c     *Controller
	field atomic.Pointer[string] // see SplitBy

	mu      sync.Mutex
	slots   [slots.Max]slotState // guarded by mu
	running map[abi.Key]int      // guarded by mu; the slot of each running object, or none if it is gone
	watched map[int]bool         // guarded by mu; the slots that are warm or warming up, and whether the API server selects their objects
}

const (
	// none is the slot of an object that is gone: any replica may run it.
	none = -1
	// unknown is the slot of an object if it cannot be determined and no other replica may be skipped.
	unknown = -2
	// everything is used in place of a slot if all objects are watched.
	everything = -3
)

// slotState is the state of one slot.
type slotState struct {
	open   bool
	runs   int
	idle   chan struct{} // closed when runs is 0; nil unless close is waiting
	ctx    context.Context
	cancel context.CancelCauseFunc // interrupts the runs
	spent  time.Duration           // computing time of the runs
	wrote  []abi.Write             // the last write to each resource and namespace
	// missed are objects that were to run while the slot was watched and not open, because they had changed.
	missed map[abi.Key]abi.Reason
}

func newSlotTable(c *Controller) *slotTable {
	return &slotTable{c: c, running: map[abi.Key]int{}, watched: map[int]bool{}}
}

// of returns the slot of an object, or none or unknown.
func (t *slotTable) of(key abi.Key) int {
	n := t.c.cfg.Slots.Count()
	switch t.by() {
	case slots.Namespace:
		return slots.Of(key.Namespace, n)
	case "":
		return unknown
	}
	if o := t.c.Stored(key); o != nil {
		return slots.Of(o.UID(), n)
	}
	if t.c.cfg.Deletes && !t.c.cfg.Slots.Gone {
		return unknown
	}
	return none
}

// by returns the field that determines slots, or empty if it is not known yet.
func (t *slotTable) by() string {
	if field := t.field.Load(); field != nil {
		return *field
	}
	return ""
}

// part returns the range of a slot.
func (t *slotTable) part(slot int) slots.Range {
	if slot == everything {
		return slots.Range{}
	}
	return slots.Range{Field: t.by(), Slot: slot, N: t.c.cfg.Slots.Count()}
}

// warm records that a slot is watched, and cool that it is no longer watched.
func (t *slotTable) warm(slot int, served bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched[slot] = served
}

func (t *slotTable) cool(slot int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watched, slot)
	t.slots[slot].missed = nil
}

// watchToo starts the watches of all warm slots for a watch that was added.
func (t *slotTable) watchToo(h *Handle) {
	t.mu.Lock()
	watched := maps.Clone(t.watched)
	t.mu.Unlock()
	for slot, served := range watched {
		t.c.watchSlot(h, false, slot, served)
	}
}

// enter begins a run. within is its context, which ends when the slot is closed. leave takes the computing time of the run. ok is false if
// the object is not this replica's.
func (t *slotTable) enter(ctx context.Context, key abi.Key) (within context.Context, leave func(spent time.Duration), ok bool) {
	slot := t.of(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch slot {
	case unknown:
		return nil, nil, false
	case none:
		t.running[key] = none
		return ctx, func(time.Duration) { t.leave(key, none, 0) }, true
	}
	s := &t.slots[slot]
	if !s.open {
		return nil, nil, false
	}
	s.runs++
	t.running[key] = slot
	within, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return within, func(spent time.Duration) {
		stop()
		cancel(nil)
		t.leave(key, slot, spent)
	}, true
}

func (t *slotTable) leave(key abi.Key, slot int, spent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, key)
	if slot == none {
		return
	}
	s := &t.slots[slot]
	s.spent += spent
	if s.runs--; s.runs == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// runs reports whether the current run of an object was admitted for its slot. It was not if the object was gone then, and has been created
// again since.
func (t *slotTable) runs(o *reflector.Object) bool {
	if t.by() == slots.Namespace {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, known := t.running[o.Ref()]
	return !known || slot == slots.Of(o.UID(), t.c.cfg.Slots.Count())
}

// open allows runs of a slot to begin, and returns the objects that it missed before.
func (t *slotTable) open(slot int) (missed map[abi.Key]abi.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.slots[slot]
	missed = s.missed
	s.open, s.wrote, s.missed = true, nil, nil
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return missed
}

func (t *slotTable) isOpen(slot int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots[slot].open
}

// opened returns a count of 0 for each open slot.
func (t *slotTable) opened() map[int]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := map[int]int{}
	for i := range t.slots {
		if t.slots[i].open {
			n[i] = 0
		}
	}
	return n
}

// close prevents new runs of a slot, and returns when the last has ended. Runs may continue for grace, and are then interrupted.
func (t *slotTable) close(ctx context.Context, slot int, grace time.Duration) []abi.Write {
	t.mu.Lock()
	s := &t.slots[slot]
	s.open = false
	var idle chan struct{}
	if s.runs > 0 {
		idle = make(chan struct{})
		s.idle = idle
	}
	cancel := s.cancel
	t.mu.Unlock()
	defer cancel(errMoved)
	if idle != nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C:
			cancel(errMoved)
			<-idle // a run that does not end blocks the slot
		case <-ctx.Done():
			cancel(errMoved)
			<-idle
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.wrote
}

// wrote returns the callback that records writes of runs, or nil without slots.
func (c *Controller) wrote() func(of abi.Key, w *abi.Write) {
	if c.slots == nil {
		return nil
	}
	return c.slots.note
}

// note records the last write to each resource and namespace, which is sufficient because a watch delivers them in order.
func (t *slotTable) note(of abi.Key, w *abi.Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, known := t.running[of]
	if !known || slot == none {
		return
	}
	stored := *w
	stored.Body = nil // valid only during the call
	list := t.slots[slot].wrote
	for i := range list {
		if o := &list[i]; o.Group == w.Group && o.Resource == w.Resource && o.Key.Namespace == w.Key.Namespace {
			if !reflector.Older(w.ResourceVersion, o.ResourceVersion) {
				list[i] = stored
			}
			return
		}
	}
	t.slots[slot].wrote = append(list, stored)
}
