package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Stats is what a controller has to do and did.
type Stats struct {
	runner.Stats
	// Paused says that no reconcile starts.
	Paused bool
	// Failures counts failed runs by kind (rule 17).
	Failures map[abi.FailureKind]uint64
	// Reconciles counts the runs that were given to a guest, the objects that
	// fail, and hot loops.
	Reconciles applier.Stats
	// Watches has the state of each watch; the first is that of Config.For.
	Watches []WatchState
	// Decoded counts the bytes that were decoded for the controller in its watches,
	// DecodedRate those of each second of about the last minute.
	Decoded     int64
	DecodedRate float64
}

// WatchState is the state of one watch of a controller.
type WatchState struct {
	// Source is what is watched.
	Source watcher.Source
	// State is how that goes.
	State watcher.State
	// Hook is how the guest's map and filter do; nil where they are not asked. Watches
	// of one kind, in several namespaces or slots, have the same one.
	Hook *queue.HookState
}

// Stats returns the present figures. It may be called at any time and never
// blocks.
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

// Quarantined returns the objects in quarantine, those that have been there
// longest first, at most limit of them, and how many there are. It may be called
// at any time.
func (c *Controller) Quarantined(limit int) (list []quarantine.State, total int) {
	return c.applier.Quarantined(limit)
}

// Unsynced says which watches keep reconciles from starting, and why: those
// that are not optional and have not synced, and those for which the guest's
// map has not been asked about all objects (rule 10). It is empty once the
// controller is ready, and stays so. It never blocks.
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

// Object is what a controller knows of one object besides its content.
type Object struct {
	// View says whether the object runs, and what its pending request waits for.
	scheduler.View[queue.Reasons]
	// ObjectState is what is kept from its past runs: failed ones, and holds.
	applier.ObjectState
}

// Object returns what is known of an object of Config.For; the zero value for
// one that is well and that nothing is asked for. It asks the controller's
// loop; the error is that of ctx, or runner.ErrNotRunning before and after Run.
func (c *Controller) Object(ctx context.Context, key abi.Key) (Object, error) {
	view, err := c.runner.Lookup(ctx, key)
	if err != nil {
		return Object{}, fmt.Errorf("controller[%s]: object[%s]: %w", c.cfg.Name, key, err)
	}
	return Object{View: view, ObjectState: c.applier.Object(key)}, nil
}

// Pause keeps reconciles from starting until Resume; those that run go on, and
// what is asked for is kept.
func (c *Controller) Pause() { c.runner.Pause() }

// Resume undoes Pause.
func (c *Controller) Resume() { c.runner.Resume() }
