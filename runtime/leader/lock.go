package leader

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock tells the gate of each write of the lease, and says why the lease cannot
// be read or written. It belongs to the goroutine of Elector.Run.
type lock struct {
	resourcelock.Interface

	gate   *Gate
	log    *slog.Logger
	failed map[string]string // by what was done: why it failed, as was said last
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	l.report(ctx, "read", err, apierrors.IsNotFound)
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.gate.renewed(sent)
	}
	l.report(ctx, "created", err, apierrors.IsAlreadyExists)
	return err
}

// Update implements resourcelock.Interface. A record without a holder gives the
// lease up: from the moment it is sent another replica may write, so this one
// must have stopped. (client-go calls OnStoppedLeading only afterwards.)
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		l.gate.close(ErrLost) // in an orderly stop it is closed already
	}
	sent := time.Now()
	err := l.Interface.Update(ctx, r)
	if err == nil && r.HolderIdentity == l.Identity() {
		l.gate.renewed(sent)
	}
	l.report(ctx, "written", err, apierrors.IsConflict)
	return err
}

// report logs why something could not be done with the lease, once until that
// changes; client-go says it to its own log only. Errors that are normal, such
// as that another replica was faster, are part of an election.
func (l *lock) report(ctx context.Context, what string, err error, normal func(error) bool) {
	switch {
	case err == nil, normal(err):
		delete(l.failed, what)
		return
	case ctx.Err() != nil || l.failed[what] == err.Error():
		return
	}
	l.failed[what] = err.Error()
	next := "until then this replica does not lead; it keeps retrying"
	if apierrors.IsForbidden(err) {
		next = "give this user get, create and update on leases.coordination.k8s.io in the namespace of the lease; " + next
	}
	l.log.Warn("the lease cannot be "+what, "lease", l.Describe(), "error", err.Error(), "next", next)
}
