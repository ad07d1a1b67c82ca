// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Activate makes the prepared revision live, or the canary if up is nil, and triggers its
// objects. It reports whether the revision is on probation; after a rollback it is not.
// After an error, the prepared revision is discarded, and a canary goes on.
func (r *Rollout) Activate(ctx context.Context, up *Prepared, ch *life.Change) (onTrial bool, err error) {
	started, before, settings := time.Now(), r.cfg.Module.Revision(), r.settings()
	k := r.canary
	if up == nil {
		up = k.Prepared
	} else {
		k, started, settings = nil, up.started, up.settings
		r.show(nil, up.Number(), up.API)
	}
	bound, cancel := bounded(ctx)
	defer cancel()
	if err := up.Promote(bound); err != nil {
		if k == nil {
			r.Discard(up)
		}
		return false, err
	}
	if k != nil {
		r.canary = nil
		r.show(nil, up.Number(), nil)
		r.canaryEnded("", "")
	} else {
		r.began = started
	}
	same := r.adopt(up) && settings == r.settings()
	onTrial = (ch.Kind == life.Swap || ch.Kind == life.Promote) && r.Options.Probation.Time > 0
	r.beginTrial(up, onTrial, ch)
	r.AwaitPending(ctx)
	n, msg := r.reconcile(ctx, same, k), "module swapped"
	if k != nil {
		msg = "canary promoted"
	}
	r.log.Info(msg, "why", ch.Why, "digest", humanize.Digest(up.Digest()), "before", before, "watches_added", len(up.added), "took", time.Since(started), "triggered", n, "probation", onTrial, "revision", up.Number())
	return onTrial, nil
}

// adopt makes the plan and the watches of a promoted revision those of the controller, and
// reports whether runs see the same input as before.
func (r *Rollout) adopt(up *Prepared) (same bool) {
	same = r.plan.SameInputs(up.plan)
	r.watches.adopt(up.list, up.added)
	r.plan = up.plan
	r.publish(up.plan, up.Digest())
	return same
}

// beginTrial begins the probation of the live revision. Without probation, the controller
// no longer needs the watches of the previous revision.
func (r *Rollout) beginTrial(up *Prepared, onTrial bool, ch *life.Change) {
	var cfg *probation.Config
	if onTrial {
		cfg = &r.Options.Probation
	}
	r.promoted(up.Candidate, cfg, ch.Urgent())
	if proven, ok := r.onTrial(); ok {
		r.cfg.Module.Pin(proven)
	} else {
		r.watches.settle(r.canary)
	}
}

// reconcile triggers the objects that a new live revision has to reconcile, and returns
// their number. same reports whether its runs see the same input as earlier runs; k is the
// canary that was promoted, or nil.
func (r *Rollout) reconcile(ctx context.Context, same bool, k *canaryRun) int {
	switch {
	case r.Options.Reconcile == v1alpha1.ReconcileChanged && same:
		return r.reconcileWhere(ctx, r.lastGood.inDoubt)
	case k != nil && r.Options.Reconcile != v1alpha1.ReconcileChanged:
		return r.reconcileWhere(ctx, func(o *reflector.Object) bool { return !k.runs(o) })
	}
	n := r.reconcileWhere(ctx, func(*reflector.Object) bool { return true })
	if n == 0 && r.Options.Reconcile != v1alpha1.ReconcileNone && r.leads() {
		r.nothingToRun(time.Now())
	}
	return n
}

// Prove records that the live revision is the one to roll back to.
func (r *Rollout) Prove(ctx context.Context, digest string) {
	if number, ok := r.pass(); ok {
		r.log.Info("probation passed", "revision", number, "watches_ended", r.watches.settle(r.canary))
	}
	r.share(ctx, func(e ledger.Entry) ledger.Entry { return e.Proven(digest, r.began) })
}

// Fail records that the live revision does worse than its predecessor.
func (r *Rollout) Fail(number uint64, reason string) {
	r.log.Warn("rolling back: the new module failed probation", "reason", reason, "revision", number)
	r.fail(reason)
	r.lastGood.distrust(number)
}

// Bury ends a revision that was rolled back.
func (r *Rollout) Bury(ctx context.Context, number uint64, digest, reason string) {
	r.shareFailed(ctx, digest, reason)
	r.cfg.Module.Drop(number)
	r.cfg.Module.Interrupt(number)
}

// Stay goes on with a revision that failed, because no other revision is left to roll back
// to.
func (r *Rollout) Stay(ctx context.Context, number uint64, digest, reason string, err error) {
	r.shareFailed(ctx, digest, reason)
	r.log.Error("cannot roll back; swap in another module with wasmctl swap", "error", err.Error(), "revision", number)
	r.pass()
}

// Judge returns the verdicts on the canary and the live revision. With elsewhere, a passed
// verdict becomes a failure if another replica has rolled the module back. Judge changes no
// state.
func (r *Rollout) Judge(ctx context.Context, elsewhere bool) (canary, live life.Verdict) {
	canary, live = r.verdicts(time.Now())
	if elsewhere && canary.Verdict == probation.Passed {
		canary = r.confirm(ctx, canary, r.canary.Digest())
	}
	if elsewhere && live.Verdict == probation.Passed {
		live = r.confirm(ctx, live, r.cfg.Module.Digest())
	}
	return canary, live
}

// Configure gives the canary, if there is one, the settings of the live revision. If the
// canary refuses them, Configure returns its error, and the canary must end.
func (r *Rollout) Configure(ctx context.Context) error {
	if r.canary == nil {
		return nil
	}
	return r.canary.Configure(ctx)
}
