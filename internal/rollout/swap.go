package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// prepareLimit bounds each of the two things that a swap waits for before the
// module is live: kinds that the API server does not have yet, and watches that
// sync.
const prepareLimit = time.Minute

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, prepareLimit, fmt.Errorf("not ready within %v", prepareLimit))
}

// change is a change of the revision that is live.
type change struct {
	// prepare makes the candidate.
	prepare func(ctx context.Context, connect host.Connect) (*host.Candidate, error)
	// digest is that of the candidate, where it is known.
	digest string
	// urgent says that nothing else comes first.
	urgent bool
	// probation says that the new revision goes on probation, canary that it runs
	// as a canary first.
	probation bool
	canary    Canary
	// result is reported once it is done; empty is not.
	result Result
	// why is for the log.
	why string
}

// prepared is a candidate whose watches have synced.
type prepared struct {
	candidate *host.Candidate
	plan      *plan.Plan
	api       *kubeapi.API // under its policy and limits
	list      []wanted
	added     map[string]*controller.Handle // watches that only it has
}

// SwapOptions say how a module is swapped in.
type SwapOptions struct {
	// Force tries one again that was rolled back.
	Force bool
	// Canary is nil for that of the Rollout's Options.
	Canary *Canary
	// Why is for the log.
	Why string
}

// Swap makes the module with these bytes live, or runs it as a canary first,
// and returns its revision. The error wraps host.ErrSameModule where that is
// so already.
func (r *Rollout) Swap(ctx context.Context, wasm []byte, o SwapOptions) (uint64, error) {
	digest := host.DigestOf(wasm)
	if o.Canary == nil {
		o.Canary = &r.Options.Canary
	}
	if r.sameCanary(digest, *o.Canary) {
		return r.canary.candidate.Number(), host.ErrSameModule
	}
	if reason := r.badReason(digest); reason != "" && !o.Force {
		err := fmt.Errorf("module %s was rolled back: %s; to swap it in again, change it or use wasmctl swap --force",
			humanize.Digest(digest), reason)
		r.cfg.Report(Refused, 0, err.Error())
		return 0, err
	}
	number, err := r.change(ctx, change{
		prepare: func(ctx context.Context, connect host.Connect) (*host.Candidate, error) {
			return r.cfg.Module.Prepare(ctx, wasm, connect)
		},
		digest: digest, why: o.Why, probation: r.Options.Probation.Time > 0, canary: *o.Canary, result: Swapped,
	})
	switch {
	case errors.Is(err, host.ErrSameModule):
		r.endCanary(ctx, Replaced, "the live module was swapped in again")
	case err != nil && ctx.Err() == nil:
		r.refused(digest, err)
		r.cfg.Report(Refused, 0, err.Error())
	}
	return number, err
}

// Rollback makes an earlier revision's code live again; 0 is the one before.
func (r *Rollout) Rollback(ctx context.Context, to uint64, why string) (uint64, error) {
	return r.rollback(ctx, to, RolledBackByUser, why)
}

func (r *Rollout) rollback(ctx context.Context, to uint64, result Result, why string) (uint64, error) {
	return r.change(ctx, change{
		urgent: result == "",
		prepare: func(ctx context.Context, connect host.Connect) (*host.Candidate, error) {
			return r.cfg.Module.PrepareKept(ctx, to, connect)
		},
		why: why, result: result,
	})
}

// change replaces the live revision. Until the new one is promoted nothing is
// touched that the old one uses: new watches sync first, and those that only the
// old one needs stay for as long as there may be a way back.
func (r *Rollout) change(ctx context.Context, ch change) (uint64, error) {
	started, before, settings := time.Now(), r.cfg.Module.Revision(), r.settings()
	up, err := r.prepare(ctx, ch)
	if err != nil {
		return 0, err
	}
	r.began = started
	attrs := []any{"why", ch.why, "digest", humanize.Digest(up.candidate.Digest()), "before", before, "watches_added", len(up.added)}
	number := up.candidate.Number()
	if ch.canary.Enabled() {
		n := r.beginCanary(ctx, up, ch.canary)
		r.log.Info("canary started", append(attrs, "took", time.Since(started), "canary", ch.canary.String(), "triggered", n,
			"revision", number)...)
		r.cfg.Report(CanaryStarted, number, ch.why)
		return number, nil
	}
	defer up.candidate.Discard()
	r.endCanary(ctx, Replaced, "another module was swapped in")
	if err := r.promote(ctx, up); err != nil {
		return 0, err
	}
	same := r.adopt(up) && settings == r.settings()
	n := r.promoted(ctx, up.candidate, promotion{probation: ch.probation, same: same})
	r.log.Info("module swapped", append(attrs, "took", time.Since(started), "triggered", n, "probation", ch.probation, "revision", number)...)
	if ch.result != "" {
		r.cfg.Report(ch.result, number, ch.why)
	}
	return number, nil
}

// promotion says what follows from a revision being live.
type promotion struct {
	probation bool
	// same says that its runs see what those before saw: watches and settings.
	same bool
	// wanted are the objects that it has not run yet; nil is all.
	wanted func(*reflector.Object) bool
}

// promoted does what follows from a revision being live, and returns how many
// objects it asked to be reconciled.
func (r *Rollout) promoted(ctx context.Context, c *host.Candidate, p promotion) int {
	var cfg *probation.Config
	if p.probation {
		cfg = &r.Options.Probation
	}
	r.record.promoted(c, cfg)
	if !p.probation {
		r.proven(ctx, c.Digest())
	}
	if _, proven, ok := r.onTrial(); ok {
		r.cfg.Module.Pin(proven)
	} else {
		r.watches.settle(r.canary)
	}
	r.AwaitPending(ctx)
	switch {
	case r.Options.Reconcile == ReconcileChanged && p.same:
		return r.reconcileWhere(ctx, r.lastGood.inDoubt)
	case p.wanted != nil && r.Options.Reconcile != ReconcileChanged:
		return r.reconcileWhere(ctx, p.wanted)
	}
	n := r.reconcileWhere(ctx, func(*reflector.Object) bool { return true })
	if n == 0 && r.Options.Reconcile != ReconcileNone && (r.cfg.Leads == nil || r.cfg.Leads()) {
		r.nothingToRun(time.Now())
	}
	return n
}

// prepare lets nothing else wait for it, unless it is urgent.
func (r *Rollout) prepare(ctx context.Context, ch change) (up *prepared, err error) {
	defer r.record.prepare(ch.digest)()
	if ch.urgent {
		return r.bringUp(ctx, ch)
	}
	err = r.cfg.Loop.Meanwhile(ctx, func(ctx context.Context) (err error) {
		up, err = r.bringUp(ctx, ch)
		return err
	})
	return up, err
}

// bringUp prepares a candidate and brings up the watches that only it needs.
// After an error nothing is left of it.
func (r *Rollout) bringUp(ctx context.Context, ch change) (_ *prepared, err error) {
	up := &prepared{}
	up.candidate, err = ch.prepare(ctx, func(digest string, m *abi.Manifest) (_ host.API, err error) {
		if up.plan, err = r.accept(ctx, digest, m); err != nil {
			return nil, err
		}
		up.api = r.cfg.API.WithPolicy(up.plan.Policy).WithLimits(r.cfg.LimitsFor(m))
		return r.cfg.Wrap(up.api), nil
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			up.candidate.Discard()
		}
	}()
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := CheckPredicates(up.candidate, r.cfg.Kind, up.plan.Related...); err != nil {
		return nil, err
	}
	if up.list, err = r.wants(up.plan, up.candidate); err != nil {
		return nil, err
	}
	up.added, err = r.watches.prepare(ctx, up.list, candidateHooks{up.candidate, r.cfg.Module})
	return up, err
}

// promote makes a candidate live.
func (r *Rollout) promote(ctx context.Context, up *prepared) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r.show(r.canary, up.candidate.Number(), up.api)
	if err := up.candidate.Promote(ctx); err != nil {
		r.watches.remove(up.added)
		return err
	}
	return nil
}

// adopt makes the plan and the watches of a candidate that was promoted those of
// the controller, and reports whether they are the same as before.
func (r *Rollout) adopt(up *prepared) (same bool) {
	same = r.plan.SameInputs(up.plan)
	r.watches.adopt(up.list, up.added)
	r.plan = up.plan
	r.ungranted.Store(&up.plan.Refused)
	return same
}

// rollBackFailed rolls back a revision that is worse than the one before.
func (r *Rollout) rollBackFailed(ctx context.Context, reason string) {
	bad, proven, _ := r.onTrial()
	digest := r.cfg.Module.Digest()
	r.log.Warn("rolling back: the new module failed probation", "reason", reason, "revision", bad)
	window := r.fail(reason)
	r.lastGood.distrust(bad)
	const why = "probation failed"
	now, err := r.rollback(ctx, proven, "", why)
	if errors.Is(err, host.ErrNotKept) { // there were swaps for longer than it is kept
		now, err = r.rollback(ctx, 0, "", why)
	}
	r.shareFailed(ctx, digest, reason)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.log.Error("cannot roll back; swap in another module with wasmctl swap", "error", err.Error(), "revision", bad)
		r.giveUp()
		r.cfg.Report(Stuck, bad, reason)
		return
	}
	r.resume(window)
	r.cfg.Module.Drop(bad)
	r.cfg.Module.Interrupt(bad)
	// After several swaps the module that is live again is not that of the revision
	// before, so the event names it.
	r.cfg.Report(RolledBack, bad, fmt.Sprintf("%s; live again, as revision %d: module %s", reason, now, humanize.Digest(r.cfg.Module.Digest())))
}
