// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// maxBatch is the maximum number of requests in one message to the runner: a turn of its loop takes about a microsecond for each.
const maxBatch = 1000

// Trigger requests reconciles, until ctx ends, and returns the number of requests. It requests none if the controller is not running, and
// none of objects that another replica runs.
func (c *Controller) Trigger(ctx context.Context, t trigger.Trigger) int {
	requests := slices.DeleteFunc(c.expand(t), func(r queue.Request) bool { return !c.Runs(r.Ref) })
	sent := 0
	for len(requests) > 0 && ctx.Err() == nil {
		n := min(len(requests), maxBatch)
		if !c.send(ctx, requests[:n]) {
			break
		}
		requests = requests[n:]
		sent += n
	}
	return sent
}

// expand returns the requests of a trigger.
func (c *Controller) expand(t trigger.Trigger) []queue.Request {
	all := t.All
	t.All = false
	requests := t.Requests(nil, nil)
	if !all {
		return requests
	}
	t.All, t.Refs = true, nil
	for _, s := range c.forHandle().all() {
		requests = t.Requests(requests, s.Store())
	}
	return requests
}

// runTrigger runs one of Config.Triggers. If it fails, that is logged; the others continue.
func (c *Controller) runTrigger(ctx context.Context, source trigger.Source) {
	err := source.Run(ctx, func(ctx context.Context, t trigger.Trigger) { c.Trigger(ctx, t) })
	if err != nil && ctx.Err() == nil {
		c.cfg.Logger.Error("trigger ended", "controller", c.cfg.Controller, "trigger", source.String(), "error", err.Error())
	}
}

// TriggerAll requests all objects at low priority, for a reason that concerns the controller as a whole.
func (c *Controller) TriggerAll(ctx context.Context, reason abi.ReasonType) int {
	return c.Trigger(ctx, trigger.Trigger{All: true, Low: true, Reason: abi.Reason{Type: reason}})
}

// TriggerWhere is like TriggerAll, for the wanted objects.
func (c *Controller) TriggerWhere(ctx context.Context, reason abi.ReasonType, wanted func(*reflector.Object) bool) int {
	t := trigger.Trigger{Low: true, Reason: abi.Reason{Type: reason}}
	for _, o := range c.Objects() {
		if wanted(o) {
			t.Refs = append(t.Refs, o.Ref())
		}
	}
	return c.Trigger(ctx, t)
}

// Runs reports whether this replica runs an object, rather than another one.
func (c *Controller) Runs(key abi.Key) bool {
	return c.slots == nil || c.slots.admits(&queue.Request{Ref: key, Low: true})
}

// Objects returns the objects of the reconciled kind in the cache, including those that other replicas run.
func (c *Controller) Objects() []*reflector.Object {
	var all []*reflector.Object
	for _, s := range c.forHandle().all() {
		all = append(all, s.Store().List()...)
	}
	return all
}
