package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// noteLimit bounds a read and a write of the ledger: the loop waits for them.
const noteLimit = 5 * time.Second

// RolledBackError is the error of a module that this or another replica has rolled
// back, where there is no other one.
type RolledBackError struct {
	Controller, Digest string
	Failure            ledger.Failure
}

// Error implements error.
func (e *RolledBackError) Error() string {
	return fmt.Sprintf("module %s %s; deploy another module, or remove %q from the Lease or the state folder",
		humanize.Digest(e.Digest), e.Failure, ledger.Key(e.Controller))
}

// Recall reads what replicas and restarts share, so that no module is tried again
// that was rolled back. The error is a *RolledBackError where the live one is such
// a module.
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

// recall remembers what has failed elsewhere or before.
func (t *record) recall(failed []ledger.Failure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range failed {
		if t.bad[f.Digest] == "" {
			t.bad[f.Digest] = f.Reason
			t.remember(admin.Revision{Digest: f.Digest, State: "failed", Reason: f.String()})
		}
	}
}

// TakeOver begins to lead: the module that the leader before has rolled back is
// rolled back here too. The error is a *RolledBackError where there is no other
// module; then nothing may run.
func (r *Rollout) TakeOver(ctx context.Context) error {
	if r.cfg.Notes == nil {
		return nil
	}
	e, err := r.Recall(ctx)
	if refused, ok := err.(*RolledBackError); ok { //nolint:errorlint // it is not wrapped
		if _, _, onTrial := r.onTrial(); !onTrial {
			return refused
		}
		r.rollBackFailed(ctx, refused.Failure.Reason)
		return nil
	}
	if err != nil { // it leads without
		r.log.Warn("cannot read which modules were rolled back", "error", err.Error())
		return nil
	}
	live := r.cfg.Module.Digest()
	if e.Live != "" && e.Live != live {
		r.log.Info("the module that was live before is another one", "before", humanize.Digest(e.Live), "digest", humanize.Digest(live))
	}
	if _, _, onTrial := r.onTrial(); !onTrial && e.Live != live {
		r.began = time.Now()
		r.proven(ctx, live)
	}
	return nil
}

// proven notes a module that is live and not on probation.
func (r *Rollout) proven(ctx context.Context, digest string) {
	r.share(ctx, func(e ledger.Entry) ledger.Entry { return e.Proven(digest, r.began) })
	if r.cfg.Proven != nil {
		r.cfg.Proven(digest)
	}
}

// FollowReplicas rolls back the live module, or ends the canary, where another replica
// has rolled that one back since it was taken here. It returns the revision that is
// live.
func (r *Rollout) FollowReplicas(ctx context.Context) (uint64, error) {
	if r.canary != nil {
		if f, failed := r.failedElsewhere(ctx, r.canary.candidate.Digest()); failed {
			r.endCanary(ctx, Failed, elsewhere(f))
		}
	}
	if f, failed := r.failedElsewhere(ctx, r.cfg.Module.Digest()); failed {
		if _, _, onTrial := r.onTrial(); onTrial {
			r.rollBackFailed(ctx, elsewhere(f))
			return r.cfg.Module.Revision(), nil
		}
		r.recall([]ledger.Failure{f})
		return r.rollback(ctx, 0, RolledBack, elsewhere(f))
	}
	return r.cfg.Module.Revision(), nil
}

func elsewhere(f ledger.Failure) string { return "another replica has rolled it back: " + f.Reason }

// failedElsewhere returns how a module has failed at another replica since the last
// change began here, if it has.
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

// share changes what replicas and restarts share. Only the leader may, and it does
// while it stops too: the lease is given up last.
func (r *Rollout) share(ctx context.Context, change func(ledger.Entry) ledger.Entry) {
	if r.cfg.Notes == nil || !r.cfg.Leads() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	e, err := ledger.Read(ctx, r.cfg.Notes, r.cfg.Controller)
	if err == nil {
		err = ledger.Write(ctx, r.cfg.Notes, r.cfg.Controller, change(e))
	}
	if err != nil {
		r.log.Warn("cannot note which module is live: a replica or a restart may run another one", "error", err.Error())
	}
}

// shareFailed notes a module that was rolled back, or that failed as a canary.
func (r *Rollout) shareFailed(ctx context.Context, digest, reason string) {
	r.share(ctx, func(e ledger.Entry) ledger.Entry {
		live := e.Live
		if _, _, onTrial := r.onTrial(); !onTrial {
			live = r.cfg.Module.Digest()
		}
		return e.RolledBack(ledger.Failure{Digest: digest, Reason: reason, Time: time.Now()}, live)
	})
}
