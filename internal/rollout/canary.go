package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/internal/rollout/canary"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// untilPromoted is the time of a canary that only a user promotes.
const untilPromoted = 100 * 365 * 24 * time.Hour

// ErrNoCanary is the error of Promote and Abort where there is none.
var ErrNoCanary = errors.New("no canary is running: start one with wasmctl swap --canary 10%")

// Canary says on which objects a module is tried first, and for how long. The
// zero Canary tries none.
type Canary struct {
	canary.Config

	// Time is for how long it must do no worse than the live one until it gets all
	// objects; 0 waits for Promote or Abort.
	Time time.Duration
}

// CanaryOff is the share that asks for none.
const CanaryOff = "off"

// ParseCanary reads a share ("10%", or "off"), namespaces and a label selector,
// each of which may be empty.
func ParseCanary(share string, namespaces []string, selector string, d time.Duration) (Canary, error) {
	if share == CanaryOff {
		if len(namespaces) > 0 || selector != "" {
			return Canary{}, errors.New("--canary off: omit --canary-namespace and --canary-selector")
		}
		share = ""
	}
	cfg, err := canary.Parse(share, namespaces, selector)
	switch {
	case err != nil:
		return Canary{}, fmt.Errorf("--canary: %w", err)
	case d < 0:
		return Canary{}, errors.New("--canary-time must not be negative")
	}
	return Canary{cfg, d}, nil
}

// String returns it for people.
func (c Canary) String() string {
	if c.Time == 0 {
		return c.Config.String() + ", until wasmctl promote or abort"
	}
	return fmt.Sprintf("%s, for %v", c.Config.String(), c.Time)
}

// canaryRun is a module that runs some of the objects, beside the live one. The
// loop owns it; sides has a lock of its own. The record has its figures.
type canaryRun struct {
	*prepared

	options    Canary
	assignment *canary.Assignment
}

// String returns for people which objects it has.
func (k *canaryRun) String() string {
	n, all := k.assignment.Count()
	return fmt.Sprintf("canary: revision %d serves %d of %d objects (%s)", k.candidate.Number(), n, all, k.options)
}

// runs reports whether an object is the canary's.
func (k *canaryRun) runs(stored *reflector.Object) bool {
	o := objectOf(stored)
	return k.assignment.Canary(&o)
}

// needs reports whether the canary needs a watch.
func (k *canaryRun) needs(id string) bool {
	return k != nil && slices.ContainsFunc(k.list, func(w wanted) bool { return w.id == id })
}

// OnCanary reports whether a revision is the canary. The loop calls it.
func (r *Rollout) OnCanary(revision uint64) bool {
	return r.canary != nil && r.canary.candidate.Number() == revision
}

// beginCanary gives the objects of its side to a candidate. It returns how many
// it asked to be reconciled.
func (r *Rollout) beginCanary(ctx context.Context, up *prepared, o Canary) int {
	r.endCanary(ctx, Replaced, "another module was swapped in")
	cfg := r.Options.Probation
	if cfg.Time = o.Time; cfg.Time == 0 {
		cfg.Time = untilPromoted
	}
	var objects []canary.Object
	for _, stored := range r.controller.Objects() {
		objects = append(objects, objectOf(stored))
	}
	r.canary = &canaryRun{prepared: up, options: o, assignment: canary.New(o.Config, up.candidate.Digest(), objects)}
	r.startCanary(cfg, r.canary)
	r.show(r.canary, up.candidate.Number(), up.api)
	return r.reconcileWhere(ctx, r.canary.runs)
}

// endCanary gives the objects of a canary, if there is one, back to the live
// revision. The result is Aborted, Failed or Replaced.
func (r *Rollout) endCanary(ctx context.Context, result Result, reason string) {
	k := r.canary
	if k == nil {
		return
	}
	r.canary = nil
	number := k.candidate.Number()
	r.show(nil, number, nil)
	r.canaryEnded(string(result), reason)
	k.candidate.Discard()
	if result == Failed {
		r.cfg.Module.Interrupt(number)
	}
	r.watches.remove(k.added)
	mine := k.runs
	if r.Options.Reconcile == ReconcileChanged {
		r.lastGood.distrust(number)
		mine = r.lastGood.inDoubt
	}
	n := r.reconcileWhere(ctx, mine)
	level := slog.LevelInfo
	if result == Failed {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "canary ended; the live module has all objects", "result", result, "why", reason, "triggered", n, "revision", number)
	if result == Failed {
		r.shareFailed(ctx, k.candidate.Digest(), reason)
	}
	r.cfg.Report(result, number, reason)
}

// Promote makes the canary live. The objects that it did not have are
// reconciled.
func (r *Rollout) Promote(ctx context.Context, why string) (uint64, error) {
	k := r.canary
	if k == nil {
		return 0, ErrNoCanary
	}
	before, settings := r.cfg.Module.Revision(), r.settings()
	if err := k.candidate.Promote(ctx); err != nil {
		return 0, err
	}
	number := k.candidate.Number()
	r.canary = nil
	r.show(nil, number, nil)
	r.canaryEnded("", "")
	same := r.adopt(k.prepared) && settings == r.settings()
	others := func(o *reflector.Object) bool { return !k.runs(o) }
	n := r.promoted(ctx, k.candidate, promotion{probation: r.Options.Probation.Time > 0, same: same, wanted: others})
	r.log.Info("canary promoted", "why", why, "digest", k.candidate.Digest(), "before", before, "triggered", n, "revision", number)
	r.cfg.Report(Promoted, number, why)
	return number, nil
}

// Abort ends the canary and returns the revision that is live.
func (r *Rollout) Abort(ctx context.Context, why string) (uint64, error) {
	if r.canary == nil {
		return 0, ErrNoCanary
	}
	r.endCanary(ctx, Aborted, why)
	return r.cfg.Module.Revision(), nil
}

// Configure gives the canary, if there is one, the settings of the live
// revision. One that refuses them ends.
func (r *Rollout) Configure(ctx context.Context) {
	if r.canary == nil {
		return
	}
	if err := r.canary.candidate.Configure(ctx); err != nil {
		r.endCanary(ctx, Failed, err.Error())
	}
}

// Wake has a value when a run has failed and Judge must be called at once.
func (r *Rollout) Wake() <-chan struct{} { return r.wake }

// Judge checks the canary and the revision on probation. It rolls back one that
// does worse, and promotes a canary whose time has passed.
func (r *Rollout) Judge(ctx context.Context) {
	r.judgeCanary(ctx)
	number, _, ok := r.onTrial()
	if !ok {
		return
	}
	if r.verdict(time.Now()) == probation.Passed {
		if f, failed := r.failedElsewhere(ctx, r.cfg.Module.Digest()); failed {
			r.rollBackFailed(ctx, elsewhere(f))
			return
		}
	}
	switch v, reason := r.judge(time.Now()); v {
	case probation.Passed:
		gone := r.watches.settle(r.canary)
		r.proven(ctx, r.cfg.Module.Digest())
		r.log.Info("probation passed", "revision", number, "watches_ended", gone)
	case probation.Failed:
		r.rollBackFailed(ctx, reason)
	default:
	}
}

func (r *Rollout) judgeCanary(ctx context.Context) {
	if r.canary == nil {
		return
	}
	switch v, reason := r.record.judgeCanary(time.Now()); v {
	case probation.Failed:
		r.endCanary(ctx, Failed, reason)
	case probation.Passed:
		if f, failed := r.failedElsewhere(ctx, r.canary.candidate.Digest()); failed {
			r.endCanary(ctx, Failed, elsewhere(f))
			return
		}
		if _, err := r.Promote(ctx, "the canary time has passed"); err != nil && ctx.Err() == nil {
			r.endCanary(ctx, Failed, err.Error())
		}
	default:
	}
}

// sameCanary reports whether bytes are already tried in the same way.
func (r *Rollout) sameCanary(digest string, o Canary) bool {
	return r.canary != nil && r.canary.candidate.Digest() == digest && r.canary.options.String() == o.String()
}
