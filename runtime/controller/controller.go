// SPDX-License-Identifier: Apache-2.0

// Package controller connects one module to its watches: events become requests, requests become reconciles, and the results of a reconcile
// become requests again.
package controller

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

type request = scheduler.Request[abi.Key, queue.Reasons]

// Controller reconciles the objects of one kind with one module.
type Controller struct {
	cfg      Config
	applier  *applier.Applier
	runner   *runner.Runner[abi.Key, queue.Reasons]
	requests chan []request
	slots    *slotTable    // nil if this replica runs all objects
	begun    chan struct{} // closed when the watches have started
	decoded  watcher.Decoded

	mu    sync.Mutex
	start func(*Handle) // guarded by mu; runs a watch; nil before Run
	cache *Cache        // its handles are replaced under mu
}

// New returns a Controller and takes its references to the watches. It starts nothing; the caller must call Run or Release.
func New(cfg Config) (*Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("controller[%s]: %w", cfg.Controller, err)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.Cache = cmp.Or(cfg.Cache, NewCache())
	cfg.For.Map = queue.Self
	c := &Controller{cfg: cfg, requests: make(chan []request), begun: make(chan struct{}), cache: cfg.Cache}
	if cfg.Slots != nil {
		c.slots = newSlotTable(c)
	}
	if err := c.build(); err != nil {
		c.Release()
		return nil, fmt.Errorf("controller[%s]: %w", cfg.Controller, err)
	}
	return c, nil
}

func (c *Controller) build() error {
	cfg := &c.cfg
	var err error
	finalized := &own{byKey: map[abi.Key]*addition{}}
	if cfg.Cluster != nil {
		cfg.Cluster = finalizers{cfg.Cluster, finalized}
	}
	runs := cfg.Config
	runs.Lookup, runs.Cache, runs.Wrote = c.lookup, c.cache, c.wrote()
	if c.applier, err = applier.New(runs); err != nil {
		return err
	}
	c.runner, err = runner.New(runner.Config[queue.Reasons]{
		Concurrency: cfg.Concurrency, DrainTimeout: cfg.DrainTimeout, Logger: cfg.Logger.With("controller", cfg.Controller), Pool: cfg.Pool,
		Scheduler: scheduler.Config[queue.Reasons]{Merge: queue.MergeReasons, Debounce: cfg.Debounce},
		OnStart:   cfg.OnStart, OnEnd: cfg.OnEnd,
	}, c.reconcile)
	if err != nil {
		return err
	}
	handles := make([]*Handle, 0, 1+len(cfg.Related))
	for _, w := range append([]Watch{cfg.For}, cfg.Related...) {
		h, err := c.newHandle(w, len(handles) == 0)
		if err != nil {
			return err
		}
		if len(handles) == 0 {
			h.own = finalized
		}
		handles = append(handles, h)
		c.cache.handles.Store(&handles)
	}
	return nil
}

// Name returns the controller's name.
func (c *Controller) Name() string { return c.cfg.Controller }

// Release releases the references to the watches if Run will not be called.
func (c *Controller) Release() {
	for _, h := range *c.cache.handles.Load() {
		h.release()
	}
}

// Run reconciles until ctx ends, and returns when everything it started has ended. After ctx has ended, no reconcile is started, and
// running ones have Config.DrainTimeout to end; closing force interrupts them at once (rule 9). The error wraps runner.ErrDrainTimeout or
// runner.ErrForced if reconciles were interrupted. A Controller can be run once.
func (c *Controller) Run(ctx context.Context, force <-chan struct{}) error {
	watching, cancel := context.WithCancel(ctx)
	c.begin(watching)
	ready := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.waitUntilReady(watching, ready) })
	for _, t := range c.cfg.Triggers {
		wg.Go(func() { c.runTrigger(watching, t) })
	}
	err := c.runner.Run(ctx, runner.Input[abi.Key, queue.Reasons]{Requests: c.requests, Ready: ready, Force: force})
	cancel()
	wg.Wait()
	c.end()
	if err != nil {
		return fmt.Errorf("controller[%s]: %w", c.cfg.Controller, err)
	}
	return nil
}

// begin starts the watches.
func (c *Controller) begin(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = func(h *Handle) { h.run(ctx, c.listed) }
	for _, h := range *c.cache.handles.Load() {
		c.start(h)
	}
	close(c.begun)
}

// end waits for the watches, whose context has ended, and prevents new ones.
func (c *Controller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range *c.cache.handles.Load() {
		h.coolAll()
		h.ended.Wait()
	}
}

// AddWatch adds a watch while the controller runs, without affecting the others. The caller must Wait for the Handle before relying on it.
// To change a watch, add the new one, wait for it, and then remove the old one: no event is missed, and if both have the same source, they
// share it, so that nothing is listed again.
func (c *Controller) AddWatch(w Watch) (*Handle, error) {
	if err := c.cfg.checkRelated("watch", &w); err != nil {
		return nil, fmt.Errorf("controller[%s]: %w", c.cfg.Controller, err)
	}
	h, err := c.newHandle(w, false)
	if err != nil {
		return nil, fmt.Errorf("controller[%s]: %w", c.cfg.Controller, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	handles := append(slices.Clone(*c.cache.handles.Load()), h)
	c.cache.handles.Store(&handles)
	if c.start != nil {
		c.start(h)
	}
	if c.slots != nil {
		c.slots.watchToo(h)
	}
	return h, nil
}

// RemoveWatch removes a watch and returns when none of its goroutines is running. The watch of Config.For cannot be removed. A second call
// has no effect.
func (c *Controller) RemoveWatch(h *Handle) {
	c.mu.Lock()
	handles := slices.Clone(*c.cache.handles.Load())
	i := slices.Index(handles, h)
	if i <= 0 {
		c.mu.Unlock()
		return
	}
	handles = slices.Delete(handles, i, i+1)
	c.cache.handles.Store(&handles)
	running := c.start != nil
	c.mu.Unlock()
	close(h.stop)
	h.coolAll()
	if running {
		h.ended.Wait()
	} else {
		h.release()
	}
}

// request passes requests to the runner, until ctx ends.
func (c *Controller) request(ctx context.Context, requests []queue.Request) { c.send(ctx, requests) }

// send is like request, and reports whether the runner has received them.
func (c *Controller) send(ctx context.Context, requests []queue.Request) bool {
	batch := make([]request, 0, len(requests))
	for _, r := range requests {
		if c.slots != nil && !c.slots.admits(&r) {
			continue
		}
		next := request{Key: r.Ref, Msg: queue.Reasons{First: r.Reason}}
		if r.Low {
			next.Priority = scheduler.Low
		}
		batch = append(batch, next)
	}
	return len(batch) == 0 && ctx.Err() == nil || c.put(ctx, batch)
}

// put passes requests to the runner, and reports whether it has received them.
func (c *Controller) put(ctx context.Context, batch []request) bool {
	select {
	case c.requests <- batch:
		return true
	case <-ctx.Done():
		return false
	}
}

// forHandle returns the watch of the reconciled kind.
func (c *Controller) forHandle() *Handle { return (*c.cache.handles.Load())[0] }

// Stored returns an object of the reconciled kind in the state that its watch has received, or nil.
func (c *Controller) Stored(key abi.Key) *reflector.Object {
	for _, s := range c.forHandle().all() {
		if ns := s.Source().Namespace; ns == "" || ns == key.Namespace {
			if o := s.Store().Get(key); o != nil {
				return o
			}
		}
	}
	return nil
}

// lookup returns an object of the reconciled kind if this replica runs it.
func (c *Controller) lookup(key abi.Key) applier.Object {
	if o := c.Stored(key); o != nil && (c.slots == nil || c.slots.runs(o)) {
		return o
	}
	return nil
}

// objects returns the number of objects of the reconciled kind.
func (c *Controller) objects() int {
	n := 0
	for _, s := range c.forHandle().all() {
		n += s.Store().Len()
	}
	return n
}

// deniedPause is the time after which a run that waits for a right is tried again, and lapsedPause for one that waits for a valid lease.
const (
	deniedPause = 2 * time.Second
	lapsedPause = 500 * time.Millisecond
)

// reconcile is the runner's job.
func (c *Controller) reconcile(ctx context.Context, item scheduler.Item[abi.Key, queue.Reasons]) scheduler.Next[queue.Reasons] {
	if c.denied(item.Key) {
		return scheduler.Next[queue.Reasons]{Requeue: true, After: deniedPause, Msg: item.Msg, Priority: item.Priority}
	}
	if c.cfg.Lapsed != nil && c.cfg.Lapsed() {
		return scheduler.Next[queue.Reasons]{Requeue: true, After: lapsedPause, Msg: item.Msg, Priority: item.Priority}
	}
	var out applier.Outcome
	if c.slots != nil {
		within, leave, ok := c.slots.enter(ctx, item.Key)
		if !ok { // another replica runs it now, and finds it when it runs all objects
			c.applier.Forget(item.Key)
			if item.Priority == scheduler.Normal {
				c.slots.miss(item.Key, item.Msg.First)
			}
			return scheduler.Next[queue.Reasons]{}
		}
		defer func() { leave(out.Cost.Guest + out.HostTime()) }()
		ctx = within
	}
	out = c.applier.Apply(ctx, item.Key, item.Msg, item.ReadyAt)
	next := scheduler.Next[queue.Reasons]{
		Requeue: out.Action.Requeue, After: out.Action.After, Delay: out.Delay, Msg: queue.Reasons{First: abi.Reason{Type: abi.ReasonRequeue}},
	}
	if out.Failed() {
		// Objects that fail during the first listing must not overtake changes.
		next.Msg.First.Type, next.Priority = abi.ReasonRetry, item.Priority
	}
	return next
}
