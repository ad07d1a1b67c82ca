// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Stats is a snapshot of the state and counters of a controller.
type Stats struct {
	runner.Stats
	// Paused reports whether reconciles are prevented from starting.
	Paused bool
	// Failures counts failed runs by kind (rule 17).
	Failures map[abi.FailureKind]uint64
	// Reconciles counts the runs that called a guest, the failing objects, and hot loops.
	Reconciles applier.Stats
	// Watches is the state of each watch; the first is that of Config.For.
	Watches []WatchState
	// Decoded counts the bytes that the controller's watches have decoded; DecodedRate is the rate per second over about the last minute.
	Decoded     int64
	DecodedRate float64
}

// WatchState is the state of one watch of a controller.
type WatchState struct {
	// Source is the source of the watch.
	Source watcher.Source
	// State is its state.
	State watcher.State
	// Hook is the state of the guest's map and filter; nil if they are not used. Watches of one kind, in several namespaces or slots, share
	// it.
	Hook *queue.HookState
}

// Stats returns the current figures. It may be called at any time and never blocks.
func (c *Controller) Stats() Stats {
	st := Stats{Stats: c.runner.Stats(), Paused: c.runner.Paused(), Failures: c.applier.Failures(), Reconciles: c.applier.Stats()}
	st.Decoded, st.DecodedRate = c.decoded.Read(time.Now())
	for _, h := range *c.cache.handles.Load() {
		var hook *queue.HookState
		if h.hook != nil {
			state := h.hook.State()
			hook = &state
		}
		for _, s := range h.all() {
			st.Watches = append(st.Watches, WatchState{Source: s.Source(), State: s.State(), Hook: hook})
		}
	}
	return st
}

// Watched returns the number of objects of the reconciled kind in the cache.
func (c *Controller) Watched() (n int) {
	if all := *c.cache.handles.Load(); len(all) > 0 {
		for _, s := range all[0].all() {
			n += s.State().Objects
		}
	}
	return n
}

// PerSlot returns the number of objects of the reconciled kind in each slot that this replica runs; nil unless replicas share the objects.
func (c *Controller) PerSlot() map[int]int {
	if c.slots == nil || c.slots.by() == "" {
		return nil
	}
	n := c.slots.opened()
	for _, o := range c.Objects() {
		key := o.UID()
		if c.slots.by() == slots.Namespace {
			key = o.Ref().Namespace
		}
		slot := slots.Of(key, c.cfg.Slots.Count())
		if count, open := n[slot]; open {
			n[slot] = count + 1
		}
	}
	return n
}

// Quarantined returns up to limit objects in quarantine, in the order in which they entered it, and their total number. It may be called at
// any time.
func (c *Controller) Quarantined(limit int) (list []quarantine.State, total int) {
	return c.applier.Quarantined(limit)
}

// Hot returns up to limit objects in hot loops, in the order of their keys. It may be called at any time.
func (c *Controller) Hot(limit int) []guard.State { return c.applier.Hot(limit) }

// Unsynced returns the watches that prevent reconciles from starting, with the reason: those that are not optional and have not synced, and
// those for which the guest's map has not handled all objects (rule 10). It is empty once the controller is ready, and stays so. It never
// blocks.
func (c *Controller) Unsynced() []string {
	var list []string
	for _, h := range *c.cache.handles.Load() {
		if !h.watch.Optional {
			list = append(list, h.unsynced()...)
		}
	}
	return list
}

func (h *Handle) unsynced() (list []string) {
	for _, s := range h.all() {
		if !isClosed(s.Synced()) {
			list = append(list, fmt.Sprintf("watch[%s]: %s", s.Source(), s.State()))
		}
	}
	if len(list) > 0 || h.hook == nil || isClosed(h.hook.Mapped()) {
		return list
	}
	return []string{fmt.Sprintf("watch[%s]: the module's map has not handled all objects yet", h.watch.Resource.GroupResource())}
}

// Object is what a controller knows about an object, apart from its content.
type Object struct {
	// View contains whether the object is running, and what its pending request waits for.
	scheduler.View[queue.Reasons]
	// ObjectState is the state from past runs, such as failures and delays.
	applier.ObjectState
}

// Object returns the state of an object of Config.For; it is the zero value for a healthy object without a request. The controller's loop
// answers; the error is that of ctx, or runner.ErrNotRunning before and after Run.
func (c *Controller) Object(ctx context.Context, key abi.Key) (Object, error) {
	view, err := c.runner.Lookup(ctx, key)
	if err != nil {
		return Object{}, fmt.Errorf("controller[%s]: object[%s]: %w", c.cfg.Controller, key, err)
	}
	return Object{View: view, ObjectState: c.applier.Object(key)}, nil
}

// Pause prevents reconciles from starting until Resume; running ones continue, and requests are collected.
func (c *Controller) Pause() { c.runner.Pause() }

// Resume undoes Pause.
func (c *Controller) Resume() { c.runner.Resume() }
