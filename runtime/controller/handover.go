// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
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
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// maxHandover limits the number of failing and of deleted objects of one slot in a handover. The others are found again by running them.
const maxHandover = 100

// Open implements shard.Participant. All objects of the slot are reconciled, because the queue of the previous owner is not handed over.
func (c *Controller) Open(ctx context.Context, slot int, gained shard.Gained, left *shard.Handover) error {
	if left == nil {
		if err := c.fresh(ctx, slot, gained.Since); err != nil {
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

// fresh waits until the watches include everything that was written to the objects of a slot before the given time.
func (c *Controller) fresh(ctx context.Context, slot int, before time.Time) error {
	var wg sync.WaitGroup
	for _, h := range *c.cache.handles.Load() {
		if h.watch.Optional {
			continue
		}
		for _, s := range h.all() {
			if watches(s, slot) {
				wg.Go(func() { _ = s.Fresh(ctx, before) }) // fails only if ctx has ended
			}
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

// watches reports whether a subscription includes objects of a slot.
func watches(s *watcher.Subscription, slot int) bool {
	part := s.Source().Shard
	return part.N == 0 || part.Slot == slot
}

// inSlot yields the objects of a slot.
func (c *Controller) inSlot(slot int) func(yield func(*reflector.Object) bool) {
	part := c.slots.part(slot)
	return func(yield func(*reflector.Object) bool) {
		for _, s := range c.forHandle().all() {
			if !watches(s, slot) {
				continue
			}
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

// failing yields the objects of a slot whose last run failed.
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

// deletedIn returns the objects of a slot that are gone and wait for a run.
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

func writesOf(left *shard.Handover) []abi.Write {
	out := make([]abi.Write, len(left.Writes))
	for i, w := range left.Writes {
		out[i] = abi.Write{
			Group: w.Group, Resource: w.Resource, Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion, Labels: w.Labels, Deleted: w.Deleted,
		}
	}
	return out
}
