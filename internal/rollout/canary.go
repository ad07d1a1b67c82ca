// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout/canary"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// untilPromoted is the time of a canary that only a user promotes.
const untilPromoted = 100 * 365 * 24 * time.Hour

// ErrNoCanary is returned by Promote and Abort if there is no canary.
var ErrNoCanary = errors.New("no canary is running: swap in a module with a canary first")

// Canary selects the objects on which a module is tried first, and for how long. The zero
// Canary selects none.
type Canary struct {
	canary.Config

	// Time is how long the canary is compared with the live revision before it gets all
	// objects; 0 means that it waits for Promote or Abort.
	Time time.Duration
}

// CanaryOf returns the canary of a spec, which must be valid. If c is nil, there is no
// canary.
func CanaryOf(c *v1alpha1.Canary) Canary {
	if c == nil {
		return Canary{}
	}
	out := Canary{
		Config: canary.Config{Share: float64(c.Percent) / 100, Namespaces: c.Namespaces}, Time: c.Time.Or(v1alpha1.DefaultCanaryTime),
	}
	if s, err := c.Selector.Labels(); c.Selector != nil && err == nil {
		out.Selector = s
	}
	return out
}

// String describes the canary for people.
func (c Canary) String() string {
	if c.Time == 0 {
		return c.Config.String() + ", until wasmctl promote or abort"
	}
	return fmt.Sprintf("%s, for %v", c.Config.String(), c.Time)
}

// canaryRun is a module that runs some of the objects while the live revision runs the
// others. The loop owns it; assignment has a lock of its own. Its figures are in the
// record.
type canaryRun struct {
	*Prepared

	options    Canary
	assignment *canary.Assignment
	here       func(abi.Key) bool // reports whether this replica runs an object
}

// String describes for people which objects the canary runs.
func (k *canaryRun) String() string {
	n, all := k.assignment.Count(k.here)
	return fmt.Sprintf("canary: revision %d serves %d of %d objects (%s)", k.Number(), n, all, k.options)
}

// runs reports whether the canary runs an object.
func (k *canaryRun) runs(stored *reflector.Object) bool {
	o := objectOf(stored)
	return k.assignment.Canary(&o)
}

// needs reports whether the canary needs a watch.
func (k *canaryRun) needs(id string) bool {
	return k != nil && slices.ContainsFunc(k.list, func(w wanted) bool { return w.id == id })
}

// StartCanary makes a prepared revision run some of the objects, while the live revision
// runs the others.
func (r *Rollout) StartCanary(ctx context.Context, up *Prepared, o Canary, why string) {
	cfg := r.Options.Probation
	if cfg.Time = o.Time; cfg.Time == 0 {
		cfg.Time = untilPromoted
	}
	var objects []canary.Object
	for _, stored := range r.controller.Objects() {
		if r.controller.Runs(stored.Ref()) {
			objects = append(objects, objectOf(stored))
		}
	}
	r.began = up.started
	r.canary = &canaryRun{Prepared: up, options: o, assignment: canary.New(o.Config, up.Digest(), objects), here: r.controller.Runs}
	r.startCanary(cfg, r.canary)
	r.show(r.canary, up.Number(), up.API)
	n := r.reconcileWhere(ctx, r.canary.runs)
	r.log.Info("canary started", "why", why, "digest", humanize.Digest(up.Digest()), "before", r.cfg.Module.Revision(), "watches_added", len(up.added),
		"took", time.Since(up.started), "canary", o.String(), "triggered", n, "revision", up.Number())
}

// EndCanary gives the objects of the canary back to the live revision. The result is
// life.CanaryAborted, CanaryFailed or CanaryReplaced.
func (r *Rollout) EndCanary(ctx context.Context, result life.Result, reason string) {
	k := r.canary
	r.canary = nil
	number := k.Number()
	r.show(nil, number, nil)
	r.canaryEnded(string(result), reason)
	k.Discard()
	failed := result == life.CanaryFailed
	if failed {
		r.cfg.Module.Interrupt(number)
	}
	r.watches.remove(k.added)
	mine := k.runs
	if r.Options.Reconcile == v1alpha1.ReconcileChanged {
		r.lastGood.distrust(number)
		mine = r.lastGood.inDoubt
	}
	n := r.reconcileWhere(ctx, mine)
	level := slog.LevelInfo
	if failed {
		level = slog.LevelWarn
		r.shareFailed(ctx, k.Digest(), reason)
	}
	r.log.Log(ctx, level, "canary ended; the live module has all objects", "result", result, "why", reason, "triggered", n, "revision", number)
}

// Wake receives a value when a run has failed and Judge must be called immediately.
func (r *Rollout) Wake() <-chan struct{} { return r.wake }
