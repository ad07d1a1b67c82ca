// Package controller wires one module to its watches: events become requests,
// requests become reconciles, and what a reconcile asks for becomes requests
// again.
package controller

import (
	"context"
	"fmt"
	"log/slog"
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

// progressEvery is how often a controller that waits for its watches says so.
const progressEvery = 5 * time.Second

type request = scheduler.Request[abi.Key, abi.Reason]

// Controller reconciles the objects of one kind with one module.
type Controller struct {
	cfg      Config
	applier  *applier.Applier
	runner   *runner.Runner[abi.Key, abi.Reason]
	subs     []*watcher.Subscription // the first is that of Config.For
	requests chan []request
}

// New returns a Controller and takes its references to the watches. It starts
// nothing; Run must be called, or Release.
func New(cfg Config) (*Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("controller[%s]: %w", cfg.Name, err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.OnOutcome == nil {
		cfg.OnOutcome = func(applier.Outcome) {}
	}
	c := &Controller{cfg: cfg, requests: make(chan []request)}
	var err error
	c.applier, err = applier.New(applier.Config{
		Controller: cfg.Name, Module: cfg.Module, Lookup: c.lookup, Deletes: cfg.Deletes, Backoff: cfg.Backoff,
	})
	if err == nil {
		c.runner, err = runner.New(runner.Config[abi.Reason]{
			Concurrency: cfg.Concurrency, DrainTimeout: cfg.DrainTimeout, Logger: cfg.Logger,
		}, c.reconcile)
	}
	if err != nil {
		return nil, fmt.Errorf("controller[%s]: %w", cfg.Name, err)
	}
	c.subscribe(cfg.For.Source, queue.Self)
	for _, owned := range cfg.Owns {
		owners := queue.Owners{
			Group: cfg.For.GroupKind.Group, Kind: cfg.For.GroupKind.Kind, ClusterScoped: cfg.For.ClusterScoped, Resource: owned.Source.Name(),
		}
		c.subscribe(owned.Source, owners.Map)
	}
	return c, nil
}

// subscribe adds a watch whose events go through mapper to the runner. The
// handler waits for the runner's loop, which never waits for a guest (rule 16).
func (c *Controller) subscribe(source watcher.Source, mapper queue.Mapper) {
	var mapped []queue.Request // reused; the watch calls the handler one at a time
	c.subs = append(c.subs, c.cfg.Watches.Acquire(source, func(ctx context.Context, ev reflector.Event) {
		if mapped = mapper(mapped[:0], ev); len(mapped) == 0 {
			return
		}
		select {
		case c.requests <- batch(mapped):
		case <-ctx.Done():
		}
	}))
}

func batch(mapped []queue.Request) []request {
	reqs := make([]request, len(mapped))
	for i, r := range mapped {
		reqs[i] = request{Key: r.Ref, Msg: r.Reason}
		if r.Low {
			reqs[i].Priority = scheduler.Low
		}
	}
	return reqs
}

// Release gives the references to the watches back if Run is not going to be
// called.
func (c *Controller) Release() {
	for _, s := range c.subs {
		s.Release()
	}
}

// Run reconciles until ctx ends, and returns when everything it started has
// ended. Then nothing new is started, and running reconciles have
// Config.DrainTimeout; closing force interrupts them at once (rule 9). The
// error wraps runner.ErrDrainTimeout or runner.ErrForced if some were
// interrupted. A Controller runs once.
func (c *Controller) Run(ctx context.Context, force <-chan struct{}) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, s := range c.subs {
		wg.Go(func() { _ = s.Run(ctx) }) // its error is only that it ran before
	}
	ready := make(chan struct{})
	wg.Go(func() { c.waitForWatches(ctx, ready) })
	err := c.runner.Run(ctx, runner.Input[abi.Key, abi.Reason]{Requests: c.requests, Ready: ready, Force: force})
	if err != nil {
		return fmt.Errorf("controller[%s]: %w", c.cfg.Name, err)
	}
	return nil
}

// waitForWatches closes ready when every watch that is not optional has synced
// and its first events have been taken by the runner (rule 10).
func (c *Controller) waitForWatches(ctx context.Context, ready chan<- struct{}) {
	begin := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for i, s := range c.subs {
		optional := i > 0 && c.cfg.Owns[i-1].Optional // the first is that of Config.For
		for synced := optional; !synced; {
			select {
			case <-s.Synced():
				synced = true
			case <-tick.C:
				c.cfg.Logger.Info("waiting for watches", "controller", c.cfg.Name, "watch", s.Source().String(), "state", s.State().String())
			case <-ctx.Done():
				return
			}
		}
	}
	close(ready)
	c.cfg.Logger.Info("reconciling", "controller", c.cfg.Name, "objects", c.subs[0].Store().Len(), "after", time.Since(begin))
}

// reconcile is the runner's job.
func (c *Controller) reconcile(ctx context.Context, item scheduler.Item[abi.Key, abi.Reason]) runner.Outcome[abi.Reason] {
	out := c.applier.Apply(ctx, item.Key, item.Msg)
	c.cfg.OnOutcome(out)
	next := runner.Outcome[abi.Reason]{Requeue: out.Action.Requeue, After: out.Action.After, Msg: abi.Reason{Type: abi.ReasonRequeue}}
	if out.Failed() {
		next.Msg.Type = abi.ReasonRetry
	}
	return next
}

func (c *Controller) lookup(key abi.Key) ([]byte, bool) {
	o := c.subs[0].Store().Get(key)
	if o == nil {
		return nil, false
	}
	return o.Msgpack(), true
}

// Stats is what a controller has to do and did.
type Stats struct {
	runner.Stats
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
}

// Stats returns the present figures. It may be called at any time and never
// blocks.
func (c *Controller) Stats() Stats {
	st := Stats{Stats: c.runner.Stats(), Failures: c.applier.Failures()}
	for _, s := range c.subs {
		st.Watches = append(st.Watches, WatchState{s.Source(), s.State()})
	}
	return st
}
