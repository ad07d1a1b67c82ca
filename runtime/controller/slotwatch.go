// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// slotWatch is the part of a sharded watch for one slot.
type slotWatch struct {
	part  slots.Range
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

// watchSlot starts the watch of a slot if the watch can be sharded and is not running yet. It watches all objects if the API server cannot
// select by slot, or if children are not in the slot of their owner.
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
	w := &slotWatch{part: c.slots.part(slot)}
	sources := h.watch.sources(w.part)
	filters, err := c.filters(&h.watch, len(sources))
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err)) // newHandle has compiled them before
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	for i, source := range sources {
		s := c.cfg.Watches.Acquire(source, c.handler(h, filters[i]))
		s.Decoded = &c.decoded
		w.subs = append(w.subs, s)
		w.ended.Go(func() { _ = s.Run(ctx) }) // it fails only if it was called before
	}
	h.parts[slot] = w
	all := append(slices.Clone(h.all()), w.subs...)
	h.subs.Store(&all)
}

// Cool implements shard.Participant.
func (c *Controller) Cool(slot int) {
	c.slots.cool(slot)
	for _, h := range *c.cache.handles.Load() {
		h.coolSlot(slot)
	}
}

func (h *Handle) coolSlot(slot int) {
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

// coolAll ends the watches of all slots.
func (h *Handle) coolAll() {
	for _, slot := range h.watched() {
		h.coolSlot(slot)
	}
}

// watched returns the slots of a sharded watch.
func (h *Handle) watched() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.parts))
}

// covers reports whether all objects in a namespace are in slots that are watched here. An empty namespace means all namespaces.
func (h *Handle) covers(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.parts {
		part := w.part
		if part.N == 0 || len(h.parts) == part.N || part.Field == slots.Namespace && namespace != "" && part.Has("", namespace) {
			return true
		}
	}
	return false
}

// elsewhere returns an error if objects of a resource in a namespace are in slots of other replicas.
func (c *Cache) elsewhere(gvr schema.GroupVersionResource, namespace string) error {
	for _, h := range *c.handles.Load() {
		if !h.sharded || h.watch.Resource != gvr {
			continue
		}
		if h.covers(namespace) {
			continue
		}
		return &CacheError{status: abi.StatusBadRequest, elsewhere: true, message: fmt.Sprintf("other replicas watch some of %s", gvr.GroupResource())}
	}
	return nil
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
