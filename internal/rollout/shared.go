// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// noteLimit bounds a read and a write of the ledger: the loop waits for them.
const noteLimit = 5 * time.Second

// RolledBackError is returned if this or another replica has rolled back the module and
// there is no other module to run.
type RolledBackError struct {
	Controller, Digest string
	Failure            ledger.Failure
}

// Error implements error.
func (e *RolledBackError) Error() string {
	return fmt.Sprintf("module %s %s; deploy another module, or remove %q from the Lease or the state folder",
		humanize.Digest(e.Digest), e.Failure, ledger.Key(e.Controller))
}

// Recall reads the state that replicas and restarts share, so that a module that was rolled
// back is not tried again. The error is a *RolledBackError if the live module was rolled
// back.
func (r *Rollout) Recall(ctx context.Context) (ledger.Entry, error) {
	if r.cfg.Notes == nil {
		return ledger.Entry{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	e, err := ledger.Read(ctx, r.cfg.Notes, r.cfg.Controller)
	if err != nil {
		return e, err
	}
	r.recall(e.Failed)
	live := r.cfg.Module.Digest()
	if f, ok := e.Failure(live); ok {
		return e, &RolledBackError{r.cfg.Controller, live, f}
	}
	return e, nil
}

// recall adds modules that failed elsewhere or earlier to the failed revisions.
func (t *record) recall(failed []ledger.Failure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range failed {
		if !slices.ContainsFunc(t.failed, func(known admin.Revision) bool { return known.Digest == f.Digest }) {
			t.remember(admin.Revision{Digest: f.Digest, State: "failed", Reason: f.String()})
		}
	}
}

// Lead reads the notes of the previous leader when this replica becomes the leader. It
// returns the verdict on the live revision, the module that was live, and the reasons why
// other modules must not be tried again. If the live module was rolled back, the error of
// the event is a *RolledBackError.
func (r *Rollout) Lead(ctx context.Context) (ev life.Event) {
	live := r.cfg.Module.Digest()
	e, err := r.Recall(ctx)
	ev = life.Event{Kind: life.Led, Digest: e.Live, Err: err, Failed: Reasons(e)}
	if refused, ok := errors.AsType[*RolledBackError](err); ok {
		ev.Lives = life.Verdict{Verdict: probation.Failed, Reason: refused.Failure.Reason}
		return ev
	}
	if err != nil { // it leads without the notes
		r.log.Warn("cannot read which modules were rolled back", "error", err.Error())
		ev.Digest = live
		return ev
	}
	if e.Live != "" && e.Live != live {
		r.log.Info("another module was live before", "before", humanize.Digest(e.Live), "digest", humanize.Digest(live))
	}
	if e.Live != live {
		r.began = time.Now()
	}
	return ev
}

// Reasons returns the reasons why modules were rolled back, by digest.
func Reasons(e ledger.Entry) map[string]string {
	reasons := map[string]string{}
	for _, f := range e.Failed {
		reasons[f.Digest] = f.Reason
	}
	return reasons
}

// Follow returns verdicts on the canary and the live revision: failed if another replica
// has rolled them back since the last change here.
func (r *Rollout) Follow(ctx context.Context) (canary, live life.Verdict) {
	if r.canary != nil {
		canary = r.confirm(ctx, canary, r.canary.Digest())
	}
	live = r.confirm(ctx, live, r.cfg.Module.Digest())
	return canary, live
}

// confirm turns a verdict into a failure if another replica has rolled the module back.
func (r *Rollout) confirm(ctx context.Context, v life.Verdict, digest string) life.Verdict {
	if f, failed := r.failedElsewhere(ctx, digest); failed {
		r.recall([]ledger.Failure{f})
		return life.Verdict{Verdict: probation.Failed, Reason: "another replica has rolled it back: " + f.Reason}
	}
	return v
}

// failedElsewhere returns the failure of a module at another replica since the last change
// began here, if there is one.
func (r *Rollout) failedElsewhere(ctx context.Context, digest string) (f ledger.Failure, failed bool) {
	if r.cfg.Notes == nil {
		return f, false
	}
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	e, err := ledger.Read(ctx, r.cfg.Notes, r.cfg.Controller)
	if err != nil {
		r.log.Warn("cannot read which modules were rolled back", "error", err.Error())
		return f, false
	}
	f, failed = e.Failure(digest)
	return f, failed && f.Time.After(r.began)
}

// share changes the state that replicas and restarts share. Only the leader may do so. It
// also does so while it stops, because it gives up the lease last.
func (r *Rollout) share(ctx context.Context, change func(ledger.Entry) ledger.Entry) {
	if r.cfg.Notes == nil || !r.leads() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	e, err := ledger.Read(ctx, r.cfg.Notes, r.cfg.Controller)
	if err == nil {
		err = ledger.Write(ctx, r.cfg.Notes, r.cfg.Controller, change(e))
	}
	if err != nil {
		r.log.Warn("cannot record which module is live: a replica or a restart may run another one", "error", err.Error())
	}
}

// shareFailed records a module that was rolled back or failed as a canary.
func (r *Rollout) shareFailed(ctx context.Context, digest, reason string) {
	r.share(ctx, func(e ledger.Entry) ledger.Entry {
		live := e.Live
		if _, onTrial := r.onTrial(); !onTrial {
			live = r.cfg.Module.Digest()
		}
		return e.RolledBack(ledger.Failure{Digest: digest, Reason: reason, Time: time.Now()}, live)
	})
}
