// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// progressEvery is how often a controller that waits for its watches logs this.
const progressEvery = 5 * time.Second

// waitUntilReady closes ready when every watch that is not optional has synced, the runner has received its first events (rule 10), and the
// controller is active.
func (c *Controller) waitUntilReady(ctx context.Context, ready chan<- struct{}) {
	begin := time.Now()
	stop := c.reportWaiting(ctx)
	defer stop()
	handles := *c.cache.handles.Load()
	for _, h := range handles {
		if !h.watch.Optional && h.Wait(ctx) != nil {
			return
		}
	}
	c.cfg.Logger.Info("watches have synced", "controller", c.cfg.Controller, "objects", c.objects(), "after", time.Since(begin))
	if c.cfg.Active != nil {
		select {
		case <-c.cfg.Active:
		case <-ctx.Done():
			return
		}
	}
	close(ready)
	c.cfg.Logger.Info("reconciling", "controller", c.cfg.Controller)
}

// listed waits until every watch that is not optional has synced. It returns false if ctx ends first.
func (c *Controller) listed(ctx context.Context) bool {
	for _, h := range *c.cache.handles.Load() {
		if !h.watch.Optional && h.waitForLists(ctx) != nil {
			return false
		}
	}
	return true
}

// reportWaiting periodically logs the watches that have not synced, until stop is called.
func (c *Controller) reportWaiting(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.logUnsynced()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (c *Controller) logUnsynced() {
	for _, h := range *c.cache.handles.Load() {
		for _, s := range h.all() {
			if !isClosed(s.Synced()) {
				c.cfg.Logger.Info("waiting for watches", "controller", c.cfg.Controller, "watch", s.Source().String(), "state", s.State().String())
			}
		}
	}
}

// denied reports whether the rights to the watch of an object were taken back. Its cached state must not reach a guest then, and it is not
// known whether it still exists.
func (c *Controller) denied(key abi.Key) bool {
	for _, s := range c.forHandle().all() {
		if ns := s.Source().Namespace; (ns == "" || ns == key.Namespace) && s.Phase() == watcher.Denied {
			return true
		}
	}
	return false
}
