// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Config configures a Controller. Controller, For, Module and Watches are required; the other fields have defaults.
type Config struct {
	// Config has the options of runs. New sets its Lookup, Cache and Wrote.
	applier.Config

	// For is the reconciled kind. Its Map and Owned are ignored.
	For Watch
	// Related are the other kinds whose events lead to reconciles of For's objects. More can be added while the controller runs.
	Related []Watch
	// Triggers cause reconciles for reasons other than events.
	Triggers []trigger.Source
	// Hooks are the guest's map and filter. It may be nil if no watch uses them.
	Hooks queue.Module
	// Watches is the set of watches, which controllers share.
	Watches *watcher.Set
	// Cache uses the controller's watches; if nil, one is created. It belongs to this controller alone.
	Cache *Cache

	// Concurrency is the maximum number of concurrent reconciles; 0 means runner.DefaultConcurrency.
	Concurrency int
	// Pool limits the workers of all controllers of the process. If nil, there is no common limit.
	Pool *runner.Pool
	// Debounce collects the triggers of one object until no more arrive (rule 6).
	Debounce scheduler.Debounce
	// DrainTimeout is how long running reconciles may continue after a stop; 0 means runner.DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Slots splits the objects between replicas. If nil, this replica runs all of them.
	Slots *Slots
	// Active is closed when reconciles may start, because this process has been elected. Before that, watches sync and the queue fills. If
	// nil, reconciles start at once.
	Active <-chan struct{}
	// Lapsed reports whether this process must not write at present, because it could not renew its lease: reconciles wait then. It may be
	// nil.
	Lapsed func() bool

	// OnStart and OnEnd are those of runner.Config, for metrics.
	OnStart func(queued time.Duration, priority scheduler.Priority)
	OnEnd   func(took time.Duration)
	// OnHidden, if not nil, is called for each event of For's objects that predicates have hidden, with the predicates that saw no change.
	// It is called from the goroutines of the watches and must be quick.
	OnHidden func(ref reflector.ObjectRef, unchanged predicate.Words)
	// OnLeft, if not nil, is called for each object of For that its watch no longer has although its last state had the Finalizer: it was
	// deleted, or is no longer selected. It is called from the goroutines of the watches and must not block.
	OnLeft func(ref reflector.ObjectRef)
	// OnRelated, if not nil, is called for each change of an object of another kind that affects objects of For, or that is passed to the
	// guest, before those objects are requested. resource is as in the reason of the requests. It must not block, and is called
	// concurrently.
	OnRelated func(resource string, ev reflector.Event)
}

// Validate returns all errors of the config, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.Controller == "" {
		errs = append(errs, errors.New("config: Controller is required"))
	}
	if c.Module == nil || c.Watches == nil {
		errs = append(errs, errors.New("config: Module and Watches are required"))
	}
	errs = append(errs, c.For.check("for"))
	for i := range c.Related {
		errs = append(errs, c.checkRelated(fmt.Sprintf("related[%d]", i), &c.Related[i]))
	}
	if c.Concurrency < 0 || c.DrainTimeout < 0 {
		errs = append(errs, errors.New("config: Concurrency and DrainTimeout must not be negative"))
	}
	return errors.Join(errs...)
}

func (w *Watch) check(where string) error {
	if w.Resource.Resource == "" || w.Kind.Kind == "" {
		return fmt.Errorf("%s: Resource and Kind are required", where)
	}
	return nil
}

func (c *Config) checkRelated(where string, w *Watch) error {
	if w.Map == nil && c.Hooks == nil && w.Hooks == nil {
		return fmt.Errorf("%s: Map is required, or Hooks for the guest's map", where)
	}
	return w.check(where)
}
