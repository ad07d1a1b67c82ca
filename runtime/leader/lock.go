package leader

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock tells the gate of each write of the lease, waits as a standby for the end of
// another's, and says why the lease cannot be read or written. It belongs to the
// goroutine of Elector.Run.
type lock struct {
	resourcelock.Interface

	gate     *Gate
	standby  standby
	acquired time.Time
	leads    func(identity string) // is told who holds the lease
	log      *slog.Logger
	failed   map[string]string // by what was done: why it failed, as was said last
}

// Get implements resourcelock.Interface. For a standby it returns when the lease of
// the leader is over, to the moment; the record then has no holder, so that client-go
// takes the lease at once. By itself client-go looks every one to 2.2 periods, and
// counts the lease from such a look to another.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for {
		r, raw, err := l.Interface.Get(ctx)
		l.report(ctx, "read", err, apierrors.IsNotFound)
		if err != nil || r.HolderIdentity == "" {
			return r, raw, err
		}
		l.leads(r.HolderIdentity)
		if l.gate.Elected() || r.HolderIdentity == l.Identity() {
			return r, raw, nil
		}
		wait := l.standby.see(time.Now(), r, raw)
		if wait == 0 {
			free := *r
			free.HolderIdentity = ""
			return &free, raw, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return r, raw, nil // it is held
		}
	}
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.stamp(&r)
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.gate.Renewed(sent)
		l.leads(r.HolderIdentity)
	}
	l.report(ctx, "created", err, apierrors.IsAlreadyExists)
	return err
}

// Update implements resourcelock.Interface. A record without a holder gives the
// lease up: from the moment it is sent another replica may write, so this one
// must have stopped. (client-go calls OnStoppedLeading only afterwards.)
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		l.gate.Close(ErrLost) // in an orderly stop it is closed already
	}
	sent := l.stamp(&r)
	err := l.Interface.Update(ctx, r)
	if err == nil && r.HolderIdentity == l.Identity() {
		l.gate.Renewed(sent)
		l.leads(r.HolderIdentity)
	}
	l.report(ctx, "written", err, apierrors.IsConflict)
	return err
}

// stamp gives a record the present time: client-go's is of before Get waited.
func (l *lock) stamp(r *resourcelock.LeaderElectionRecord) time.Time {
	now := time.Now()
	if !l.gate.Elected() {
		l.acquired = now
	}
	if r.RenewTime = metav1.NewTime(now); r.HolderIdentity != "" {
		r.AcquireTime = metav1.NewTime(l.acquired)
	}
	return now
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
		next = rights + "; " + next
	}
	l.log.Warn("the lease cannot be "+what, "lease", l.Describe(), "error", err.Error(), "next", next)
}
