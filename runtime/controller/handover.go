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

// maxHandover limits the number of failing, of deleted and of due objects of one slot in a handover. Failing and due ones are found again by
// running all objects. While there are more deleted ones, the slot stays open: see drainDeletions.
const maxHandover = 100

// Open implements shard.Participant. All objects of the slot are reconciled with low priority. Those that may have changed since their last
// run overtake them: those that the previous owner names, those whose events arrived before the slot was open, and those that changed after
// the previous owner was last heard.
func (c *Controller) Open(ctx context.Context, slot int, gained shard.Gained, left *shard.Handover) error {
	if left == nil {
		if err := c.fresh(ctx, slot, gained.Since); err != nil {
			return err
		}
		left = &shard.Handover{}
	} else if c.cache.AwaitWrites(ctx, writesOf(left)) {
		return context.Cause(ctx)
	}
	batch := c.backlog(slot, gained, left)
	for part := range slices.Chunk(batch, maxBatch) {
		if !c.put(ctx, part) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// backlog opens a slot, and returns the requests for its objects, the urgent ones first.
func (c *Controller) backlog(slot int, gained shard.Gained, left *shard.Handover) (batch []request) {
	urgent := func(key abi.Key, reason abi.Reason) {
		batch = append(batch, request{Key: key, Msg: queue.Reasons{First: reason}})
	}
	for key, reason := range c.slots.open(slot) {
		urgent(key, reason)
	}
	for _, key := range left.Due {
		urgent(key, abi.Reason{Type: abi.ReasonObjectUpdated})
	}
	for _, key := range left.Deleted {
		urgent(key, abi.Reason{Type: abi.ReasonObjectDeleted})
	}
	now := time.Now()
	later := map[abi.Key]bool{}
	for _, f := range left.Failing {
		c.applier.Restore(f.Key, applier.Row{Runs: f.Attempt, First: f.Since})
		if later[f.Key] = f.Retry.After(now); later[f.Key] {
			batch = append(batch, request{Key: f.Key, At: f.Retry, Msg: queue.Reasons{First: abi.Reason{Type: abi.ReasonRetry}}})
		}
	}
	var all []request
	for o := range c.inSlot(slot) {
		listed := abi.Reason{Type: abi.ReasonListed}
		switch {
		case gained.Heard != "" && reflector.Older(gained.Heard, o.ResourceVersion()):
			urgent(o.Ref(), listed)
		case !later[o.Ref()]:
			all = append(all, request{Key: o.Ref(), Priority: scheduler.Low, Msg: queue.Reasons{First: listed}})
		}
	}
	return append(batch, all...)
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
	grace := cmp.Or(c.cfg.DrainTimeout, runner.DefaultDrainTimeout)
	if c.cfg.Deletes {
		c.drainDeletions(ctx, slot, grace)
	}
	var left shard.Handover
	for _, w := range c.slots.close(ctx, slot, grace) {
		left.Writes = append(left.Writes, shard.Write{
			Group: w.Group, Resource: w.Resource, Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion, Labels: w.Labels, Deleted: w.Deleted,
		})
	}
	for key, runs := range c.failing(slot) {
		left.Failing = append(left.Failing, runs)
		c.applier.Forget(key)
	}
	if c.cfg.Deletes {
		all := c.pending(ctx, slot, true, func(scheduler.View[queue.Reasons]) bool { return true })
		if left.Deleted = first(all); len(all) > maxHandover {
			c.cfg.Logger.Warn("deletions are lost: a slot moves to another replica before they have run", "controller", c.cfg.Controller, "slot", slot, "count", len(all)-maxHandover)
		}
	}
	left.Due = first(c.pending(ctx, slot, false, func(v scheduler.View[queue.Reasons]) bool {
		return v.Priority == scheduler.Normal && v.State != scheduler.Waiting
	}))
	c.forgetTimers(ctx, slot)
	return left
}

// first returns the keys that a handover can carry.
func first(keys []abi.Key) []abi.Key { return keys[:min(len(keys), maxHandover)] }

// drainEvery is the interval at which drainDeletions looks for deletions.
const drainEvery = 50 * time.Millisecond

// drainDeletions waits, at most for grace, while more deletions of an open slot are due than a handover can carry. The next owner cannot find
// them: its watches may have begun after the deletions.
func (c *Controller) drainDeletions(ctx context.Context, slot int, grace time.Duration) {
	due := func(v scheduler.View[queue.Reasons]) bool { return v.State != scheduler.Waiting }
	for end := time.Now().Add(grace); len(c.pending(ctx, slot, true, due)) > maxHandover && time.Now().Before(end); {
		select {
		case <-time.After(drainEvery):
		case <-ctx.Done():
			return
		}
	}
}

// forgetTimers removes the requeues of a slot that was closed: the next owner has its own.
func (c *Controller) forgetTimers(ctx context.Context, slot int) {
	ctx = context.WithoutCancel(ctx)
	queued, _, _ := c.runner.Pending(ctx, func(v scheduler.View[queue.Reasons]) bool { return v.State == scheduler.Waiting })
	queued = slices.DeleteFunc(queued, func(key abi.Key) bool { return c.slots.of(key) != slot || c.Stored(key) == nil })
	_ = c.runner.Forget(ctx, queued) // fails only if the controller has ended
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

// pending returns the objects of a slot that wait for a run: those that are gone, or the others. If the slot is closed, that includes all
// whose run was refused for this reason.
func (c *Controller) pending(ctx context.Context, slot int, gone bool, matches func(scheduler.View[queue.Reasons]) bool) (keys []abi.Key) {
	queued, running, err := c.runner.Pending(ctx, matches) // fails only if the controller has ended
	for err == nil && !c.slots.isOpen(slot) && slices.ContainsFunc(running, func(key abi.Key) bool { return c.slots.of(key) == slot }) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
		queued, running, err = c.runner.Pending(ctx, matches)
	}
	seen := map[abi.Key]bool{}
	for _, key := range append(queued, c.slots.missed(slot)...) {
		if !seen[key] && c.slots.of(key) == slot && c.Stored(key) == nil == gone {
			seen[key], keys = true, append(keys, key)
		}
	}
	return keys
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
