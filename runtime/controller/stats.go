package controller

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Stats is what a controller has to do and did.
type Stats struct {
	runner.Stats
	// Paused says that no reconcile starts.
	Paused bool
	// Failures counts failed runs by kind (rule 17).
	Failures map[abi.FailureKind]uint64
	// Watches has the state of each watch; the first is that of Config.For.
	Watches []WatchState
}

// WatchState is the state of one watch of a controller.
type WatchState struct {
	// Source is what is watched.
	Source watcher.Source
	// State is how that goes.
	State watcher.State
	// Hook is how the guest's map and filter do; nil where they are not asked.
	Hook *queue.HookState
}

// Stats returns the present figures. It may be called at any time and never
// blocks.
func (c *Controller) Stats() Stats {
	st := Stats{Stats: c.runner.Stats(), Paused: c.runner.Paused(), Failures: c.applier.Failures()}
	for _, h := range *c.cache.handles.Load() {
		for _, s := range h.subs {
			w := WatchState{Source: s.Source(), State: s.State()}
			if h.hook != nil {
				state := h.hook.State()
				w.Hook = &state
			}
			st.Watches = append(st.Watches, w)
		}
	}
	return st
}

// Pause keeps reconciles from starting until Resume; those that run go on, and
// what is asked for is kept.
func (c *Controller) Pause() { c.runner.Pause() }

// Resume undoes Pause.
func (c *Controller) Resume() { c.runner.Resume() }
