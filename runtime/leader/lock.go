// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
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
	renewed  time.Time             // when the last successful renewal was sent
	holder   string                // of the lease, as last read or written
	leads    func(identity string) // called with the holder of the lease
	log      *slog.Logger
	failed   map[string]string // the last logged error of each operation
}

// Get implements resourcelock.Interface. For a standby, it returns exactly when the leader's lease has expired; the record then has no
// holder, so that client-go takes the lease at once. By itself, client-go would check every one to 2.2 periods, and measure the lease from
// one check to another. For a leader, it retries until the API server answers.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for {
		r, raw, err := l.read(ctx)
		if err != nil && !apierrors.IsNotFound(err) && l.gate.Elected() && l.gate.final.Err() == nil {
			select {
			case <-time.After(l.standby.period / 4):
				continue
			case <-ctx.Done():
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return r, raw, err
		}
		if l.gate.Elected() || err == nil && (released(r) || r.HolderIdentity == l.Identity()) {
			return r, raw, err
		}
		wait := l.standby.see(time.Now(), r, raw)
		if wait == 0 && err == nil {
			free := *r
			r, free.HolderIdentity = &free, ""
		}
		if wait == 0 {
			return r, raw, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return r, raw, ctx.Err()
		}
	}
}

// read reads the lease. If this replica leads but the lease no longer has it as the holder, it closes the gate, because another replica may
// write soon; client-go would go on until its deadline to renew. If the lease has no holder, or was deleted, and no other replica can have had
// it since the last renewal, this replica takes it again at once, before others may.
func (l *lock) read(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	l.report(ctx, "read", err, apierrors.IsNotFound)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	if l.holder = ""; err == nil {
		l.holder = r.HolderIdentity
	}
	switch {
	case !l.gate.Elected() || l.holder == l.Identity():
	case l.holder != "" || time.Since(l.renewed) >= l.gate.validity:
		l.gate.Close(ErrLost)
		return nil, nil, ErrLost
	case l.gate.Valid():
		l.log.Warn("the lease was deleted, or its holder was removed; taking it again", "lease", l.Describe())
		l.gate.Suspend()
	}
	if l.holder != "" {
		l.leads(l.holder)
	}
	return r, raw, err
}

// released reports whether the last leader has released the lease, or no replica has had it yet. A record without a holder but with the
// duration of a lease was changed by something other than an election: the leader may write until it notices.
func released(r *resourcelock.LeaderElectionRecord) bool {
	return r.HolderIdentity == "" && r.LeaseDurationSeconds <= 1
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.stamp(&r)
	err := l.Interface.Create(ctx, r)
	l.wrote(r, sent, err)
	l.report(ctx, "created", err, apierrors.IsAlreadyExists)
	return err
}

// Update implements resourcelock.Interface. client-go calls it twice in each period of a leader: halfway between two renewals, it only reads
// the lease, to notice soon that another replica has it.
//
// A record without a holder releases the lease: from the moment it is sent, another replica may write, so this one must have stopped.
// client-go releases it also when it could not renew it until the deadline, but then this replica keeps it. And it would release the lease of
// another replica, because it reads the lease for the latest version, but not for its holder.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		if l.holder != l.Identity() || !errors.Is(l.gate.Err(), ErrReleased) {
			return ErrLost
		}
	} else if l.holder == l.Identity() && time.Since(l.renewed) < l.standby.period*3/4 {
		_, _, err := l.read(ctx)
		if err == nil && l.holder != l.Identity() {
			err = ErrLapsed // client-go then gets it, and writes it
		}
		return err
	}
	sent := l.stamp(&r)
	err := l.Interface.Update(ctx, r)
	l.wrote(r, sent, err)
	l.report(ctx, "written", err, apierrors.IsConflict)
	return err
}

// wrote records the result of a write of the lease.
func (l *lock) wrote(r resourcelock.LeaderElectionRecord, sent time.Time, err error) {
	if err != nil {
		return
	}
	if l.holder = r.HolderIdentity; l.holder == l.Identity() {
		l.renewed = sent
		l.gate.Renewed(sent)
		l.leads(l.holder)
	}
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
