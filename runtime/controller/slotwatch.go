package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// maxHandover bounds what is told of the failing and of the deleted objects of one
// slot. The others are found again by running them.
const maxHandover = 100

// slotWatch is a sharded watch of one slot.
type slotWatch struct {
	subs  []*watcher.Subscription
	stop  context.CancelFunc
	ended sync.WaitGroup
}

var _ shard.Participant = (*Controller)(nil)

// Warm implements shard.Participant.
func (c *Controller) Warm(ctx context.Context, slot int) error {
	select {
	case <-c.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	served, err := c.cfg.Slots.Served(ctx)
	if err != nil {
		return err
	}
	c.slots.warm(slot, served)
	for i, h := range *c.cache.handles.Load() {
		c.watchSlot(h, i == 0, slot, served)
	}
	for _, h := range *c.cache.handles.Load() {
		if h.watch.Optional {
			continue
		}
		if err := h.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watchSlot starts the watch of a slot, where it may be sharded and does not run yet.
// Where the API server does not select, and where children are not in the slot of
// their owner, all objects are watched.
func (c *Controller) watchSlot(h *Handle, isFor bool, slot int, served bool) {
	if !h.sharded {
		return
	}
	if !served || !isFor && c.slots.by() != slots.Namespace {
		slot = everything
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.parts[slot] != nil {
		return
	}
	sources := h.watch.sources(c.slots.part(slot))
	filters, err := c.filters(&h.watch, len(sources))
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err)) // newHandle has compiled them
	}
	w := &slotWatch{}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	for i, source := range sources {
		s := c.cfg.Watches.Acquire(source, c.handler(h, filters[i]))
		w.subs = append(w.subs, s)
		w.ended.Go(func() { _ = s.Run(ctx) }) // its error is only that it ran before
	}
	h.parts[slot] = w
	all := append(slices.Clone(h.all()), w.subs...)
	h.subs.Store(&all)
}

// Drop implements shard.Participant.
func (c *Controller) Drop(slot int) {
	c.slots.cool(slot)
	for _, h := range *c.cache.handles.Load() {
		h.dropSlot(slot)
	}
}

func (h *Handle) dropSlot(slot int) {
	h.mu.Lock()
	w := h.parts[slot]
	if w == nil {
		h.mu.Unlock()
		return
	}
	delete(h.parts, slot)
	left := slices.DeleteFunc(slices.Clone(h.all()), func(s *watcher.Subscription) bool { return slices.Contains(w.subs, s) })
	h.subs.Store(&left)
	h.mu.Unlock()
	w.stop()
	w.ended.Wait()
}

// dropAll ends the watches of all slots.
func (h *Handle) dropAll() {
	for _, slot := range h.watched() {
		h.dropSlot(slot)
	}
}

// watched returns the slots that a sharded watch watches.
func (h *Handle) watched() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.parts))
}

// covers reports whether all objects in a namespace are in slots that are watched
// here; an empty namespace is all.
func (h *Handle) covers(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.parts {
		part := w.subs[0].Source().Shard
		if part.N == 0 || len(h.parts) == part.N || part.Field == slots.Namespace && namespace != "" && part.Has("", namespace) {
			return true
		}
	}
	return false
}

// Open implements shard.Participant. All objects of the slot are reconciled: what the
// owner before had queued is not told.
func (c *Controller) Open(ctx context.Context, slot int, left *shard.Handover) error {
	if left == nil {
		if err := c.fresh(ctx, slot); err != nil {
			return err
		}
		left = &shard.Handover{}
	} else if c.cache.AwaitWrites(ctx, writesOf(left)) {
		return context.Cause(ctx)
	}
	c.slots.open(slot)
	now := time.Now()
	later := map[abi.Key]bool{}
	var batch []request
	for _, f := range left.Failing {
		c.applier.Restore(f.Key, applier.Row{Runs: f.Attempt, First: f.Since})
		if later[f.Key] = f.Retry.After(now); later[f.Key] {
			batch = append(batch, request{Key: f.Key, At: f.Retry, Msg: queue.Reasons{First: abi.Reason{Type: abi.ReasonRetry}}})
		}
	}
	for _, key := range left.Deleted {
		batch = append(batch, request{Key: key, Msg: queue.Reasons{First: abi.Reason{Type: abi.ReasonObjectDeleted}}})
	}
	for o := range c.inSlot(slot) {
		if !later[o.Ref()] {
			batch = append(batch, request{Key: o.Ref(), Priority: scheduler.Low, Msg: queue.Reasons{First: abi.Reason{Type: abi.ReasonListed}}})
		}
	}
	for part := range slices.Chunk(batch, maxBatch) {
		if !c.put(ctx, part) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// fresh waits until the watches have all that has been written until now of the
// objects of a slot.
func (c *Controller) fresh(ctx context.Context, slot int) error {
	var wg sync.WaitGroup
	for _, h := range *c.cache.handles.Load() {
		if h.watch.Optional {
			continue
		}
		for _, s := range h.all() {
			if part := s.Source().Shard; part.N == 0 || part.Slot == slot {
				wg.Go(func() { _ = s.Fresh(ctx) }) // fails only where ctx has ended
			}
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

// inSlot yields the objects of a slot.
func (c *Controller) inSlot(slot int) func(yield func(*reflector.Object) bool) {
	part := c.slots.part(slot)
	return func(yield func(*reflector.Object) bool) {
		for _, s := range c.forHandle().all() {
			for _, o := range s.Store().List() {
				if part.Has(o.UID(), o.Ref().Namespace) && !yield(o) {
					return
				}
			}
		}
	}
}

// Close implements shard.Participant.
func (c *Controller) Close(ctx context.Context, slot int) shard.Handover {
	var left shard.Handover
	for _, w := range c.slots.close(ctx, slot, cmp.Or(c.cfg.DrainTimeout, runner.DefaultDrainTimeout)) {
		left.Writes = append(left.Writes, shard.Write{
			Group: w.Group, Resource: w.Resource, Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion, Labels: w.Labels, Deleted: w.Deleted,
		})
	}
	for key, runs := range c.failing(slot) {
		left.Failing = append(left.Failing, runs)
		c.applier.Forget(key)
	}
	if c.cfg.Deletes {
		left.Deleted = c.deletedIn(ctx, slot)
	}
	return left
}

// failing yields the objects of a slot whose last run has failed.
func (c *Controller) failing(slot int) func(yield func(abi.Key, shard.Failing) bool) {
	return func(yield func(abi.Key, shard.Failing) bool) {
		n := 0
		for key, row := range c.applier.Failing {
			if c.slots.of(key) != slot {
				continue
			}
			if n++; n > maxHandover {
				return
			}
			f := shard.Failing{Key: key, Attempt: row.Runs, Since: row.First}
			if v, err := c.runner.Lookup(context.Background(), key); err == nil && v.State == scheduler.Waiting {
				f.Retry = v.At
			}
			if !yield(key, f) {
				return
			}
		}
	}
}

// deletedIn returns the objects of a slot that are gone, and wait for a run.
func (c *Controller) deletedIn(ctx context.Context, slot int) (gone []abi.Key) {
	keys, err := c.runner.Pending(ctx)
	if err != nil {
		return nil
	}
	for _, key := range keys {
		if c.slots.of(key) == slot && c.Stored(key) == nil && len(gone) < maxHandover {
			gone = append(gone, key)
		}
	}
	return gone
}

// Spent implements shard.Participant.
func (c *Controller) Spent(yield func(slot int, d time.Duration)) {
	c.slots.mu.Lock()
	defer c.slots.mu.Unlock()
	for i := range c.slots.slots {
		if d := c.slots.slots[i].spent; d > 0 {
			yield(i, d)
		}
	}
}

func writesOf(left *shard.Handover) []abi.Write {
	out := make([]abi.Write, len(left.Writes))
	for i, w := range left.Writes {
		out[i] = abi.Write{
			Group: w.Group, Resource: w.Resource, Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion, Labels: w.Labels, Deleted: w.Deleted,
		}
	}
	return out
}
