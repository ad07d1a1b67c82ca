// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock reports each write of the lease to the gate, waits as a standby for the end of the leader's lease, and logs why the lease cannot be
// read or written. It belongs to the goroutine of Elector.Run.
type lock struct {
	resourcelock.Interface

	gate     *Gate
	standby  standby
	acquired time.Time
	holder   string                // of the lease, as last read or written
	leads    func(identity string) // called with the holder of the lease
	log      *slog.Logger
	failed   map[string]string // the last logged error of each operation
}

// Get implements resourcelock.Interface. For a standby, it returns exactly when the leader's lease has expired; the record then has no
// holder, so that client-go takes the lease at once. By itself, client-go would check every one to 2.2 periods, and measure the lease from
// one check to another.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for {
		r, raw, err := l.Interface.Get(ctx)
		l.report(ctx, "read", err, apierrors.IsNotFound)
		if l.taken(r, err) {
			l.gate.Close(ErrLost)
		}
		if err != nil {
			return r, raw, err
		}
		if l.holder = r.HolderIdentity; l.holder == "" {
			return r, raw, nil
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
			return r, raw, nil // the lease is held
		}
	}
}

// taken reports whether this replica leads but the lease that was read does not have it as the holder. Then another replica may write at
// once, whether the lease has another holder, none, or was deleted. client-go would go on until its deadline to renew.
func (l *lock) taken(r *resourcelock.LeaderElectionRecord, err error) bool {
	return l.gate.Elected() && (apierrors.IsNotFound(err) || err == nil && r.HolderIdentity != l.Identity())
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.stamp(&r)
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.holder = r.HolderIdentity
		l.gate.Renewed(sent)
		l.leads(r.HolderIdentity)
	}
	l.report(ctx, "created", err, apierrors.IsAlreadyExists)
	return err
}

// Update implements resourcelock.Interface. A record without a holder releases the lease: from the moment it is sent, another replica may
// write, so this one must have stopped. (client-go calls OnStoppedLeading only afterwards.) The lease of another replica is not released:
// client-go would, because it reads the lease for the latest version, but not for its holder.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		l.gate.Close(ErrLost) // in an orderly stop, it is closed already
		if l.holder != l.Identity() {
			return ErrLost
		}
	}
	sent := l.stamp(&r)
	err := l.Interface.Update(ctx, r)
	if err == nil {
		l.holder = r.HolderIdentity
	}
	if err == nil && r.HolderIdentity == l.Identity() {
		l.gate.Renewed(sent)
		l.leads(r.HolderIdentity)
	}
	l.report(ctx, "written", err, apierrors.IsConflict)
	return err
}

// stamp sets the times of a record to now, because client-go's are from before Get waited.
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

// report logs why an operation on the lease failed, once until the error changes; client-go logs it only to its own log. Normal errors,
// such as another replica being faster, are not logged.
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
