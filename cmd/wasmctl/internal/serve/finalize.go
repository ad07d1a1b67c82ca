// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// closing is the state of a unit whose Reconciler is being deleted.
type closing struct {
	releasing time.Time // of the first stepRelease; zero before
	problem   error     // the reason why the module cannot be started
	said      string    // the last message in the log
}

// finalize performs a step in the deletion of a Reconciler. It requests another call unless the Reconciler
// can go.
func (s *Server) finalize(ctx context.Context, kind string, r *wasmctl.Request) (wasmctl.Action, error) {
	u, o, err := s.current(ctx, kind, r)
	if u == nil {
		return wasmctl.Action{Requeue: true}, err
	}
	if s.cfg.ShareObjects && !s.rt.Owns(string(o.meta.UID)) {
		return wasmctl.Action{Requeue: true, After: onTrial}, u.assist(ctx, o)
	}
	e, found := u.observe(ctx, o)
	step, failure, after := e.next(), found.failure, min(onTrial+e.since/10, mostRetry)
	switch step {
	case stepWait:
	case stepEnd:
		return wasmctl.Action{}, s.remove(ctx, o.id(), true)
	case stepFinalize:
		launching, end := u.begin(ctx, o)
		defer end()
		problem := u.launch(launching, o)
		if isOutdated(launching) {
			return wasmctl.Action{Requeue: true, After: soon}, nil
		}
		u.closing.problem = problem
		failure = u.lastError()
	case stepRelease:
		if u.closing.releasing.IsZero() {
			u.closing.releasing = time.Now()
		}
		if err := u.halt(ctx); err != nil {
			return wasmctl.Action{}, err
		}
		if e.alone {
			failure = found.release(ctx, s)
			for i := range found.batches {
				s.released(o, &found.batches[i], e.terminating)
			}
		}
		if e.alone && failure == "" {
			after = 0
		}
	}
	return wasmctl.Action{Requeue: true, After: after}, u.tell(ctx, o, e.waits(step, found.first(), failure))
}

// assist is the part in a deletion of a replica that runs the module for some of the objects, if another
// replica decides.
func (u *unit) assist(ctx context.Context, o *reconciler) error {
	if c := meta.FindStatusCondition(o.status.Conditions, v1alpha1.Ready); c != nil && c.Reason == reasonReleasing {
		return u.halt(ctx)
	}
	if !o.writes() || o.spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return nil
	}
	ctx, end := u.begin(ctx, o)
	defer end()
	return u.launch(ctx, o)
}

// writes reports whether the spec lets the module write.
func (r *reconciler) writes() bool {
	return !r.spec.Suspend && cmp.Or(r.spec.Mode, v1alpha1.ModeEnforce) == v1alpha1.ModeEnforce
}

// launch starts the module if it does not run.
func (u *unit) launch(ctx context.Context, o *reconciler) error {
	if u.controller != nil {
		return nil
	}
	return u.step(ctx, o)
}

// halt stops the module.
func (u *unit) halt(ctx context.Context) error {
	u.life.Lock() // the object may move to another replica at the same time
	defer u.life.Unlock()
	return u.stop(ctx, true)
}

// observe returns what is known about a Reconciler that is being deleted, and its objects.
func (u *unit) observe(ctx context.Context, o *reconciler) (e ending, found *listing) {
	s, found := u.server, &listing{}
	e = ending{
		since: time.Since(o.meta.DeletionTimestamp.Time), orphan: o.spec.DeletionPolicy == v1alpha1.DeletionOrphan,
		writes: o.writes(), stopped: u.controller == nil, failed: u.closing.problem != nil,
	}
	if e.orphan {
		return e, found
	}
	in := &seen{}
	if u.controller != nil {
		st := u.controller.Status()
		in.controller, e.failed = &st, startProblem(&st, u.controller) != nil
		remember(&o.status, u.finalizerOf(ctx, o, &st))
	}
	if c := meta.FindStatusCondition(o.status.Conditions, v1alpha1.Ready); c != nil && c.Reason == reasonReleasing && u.closing.releasing.IsZero() {
		u.closing.releasing = time.Now() // another replica, or an earlier process, has begun
	}
	e.releasing = !u.closing.releasing.IsZero()
	e.alone = !s.cfg.ShareObjects || len(o.status.Finalizers) == 0 || e.releasing && time.Since(u.closing.releasing) >= stopDelay
	found.list(ctx, s, o)
	e.unlisted, e.objects, e.rights = found.failure != "", found.count(), !found.byHost()
	if e.objects > 0 {
		e.terminating = s.terminating(ctx, o)
		e.mine, e.deleting = found.watched(u, in.controller)
	}
	return e, found
}

// finalizerOf returns the finalizer that a running module puts on objects, or nil if there is none. The
// service account must have the right to put it on: with its own rights, the host later takes off only what
// the account could have taken off itself. Otherwise, a module could name the finalizer of another program.
func (u *unit) finalizerOf(ctx context.Context, o *reconciler, c *admin.Controller) *v1alpha1.Finalizer {
	if c.Finalizer == nil || !o.writes() {
		return nil
	}
	f := &v1alpha1.Finalizer{Name: c.Finalizer.Name, For: c.Kind, Namespaces: c.Finalizer.Namespaces}
	if remembers(&o.status, f) {
		return f
	}
	kind, err := u.server.kinds.Resolve(ctx, f.For)
	if err != nil {
		return nil
	}
	as, err := u.server.as(o.user(u.server.cfg.ServiceAccount))
	if err != nil || !as.client.HasAccess(ctx, kubeapi.FinalizerAccess(kind, f.Namespaces)) {
		return nil
	}
	return f
}

// lastError returns the reason why the module does not run, or the last error of its runs.
func (u *unit) lastError() string {
	if err := u.closing.problem; err != nil {
		return err.Error()
	}
	if u.controller == nil {
		return ""
	}
	st := u.controller.Status()
	if p := startProblem(&st, u.controller); p != nil {
		return p.message
	}
	if f := st.LastFailure; f != nil && st.Failing > 0 {
		return f.Object + ": " + f.Error
	}
	return ""
}

// tell writes into the status, and once into the log, what the deletion waits for.
func (u *unit) tell(ctx context.Context, o *reconciler, p *problem) error {
	if p.message != u.closing.said {
		u.closing.said = p.message
		u.log.Info("the deletion of a Reconciler waits", "reason", p.reason, "message", p.message)
	}
	in := &seen{generation: o.meta.Generation, requested: o.requested(), mode: string(o.spec.Mode), problem: p}
	in.describe(u, o)
	return u.server.write(ctx, o, next(o.status, in, time.Now()))
}
