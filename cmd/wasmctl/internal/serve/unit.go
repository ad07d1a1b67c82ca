// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// unit is one Reconciler in this process. One worker at a time processes it. The controller uses the
// fields that mu guards at the same time.
type unit struct {
	server *Server
	uid    types.UID
	log    *slog.Logger

	controller *wasmctl.Controller
	source     source            // of module
	module     *fetched          // the wanted module; nil before the first fetch
	followed   time.Time         // the last fetch
	given      *fetched          // the module that the controller got last
	forced     string            // the last request for a forced swap
	trial      *trial            // of the wanted module; nil if it does not shadow the live one
	same       string            // the digest of the module that passed its trial
	refusal    *v1alpha1.Refused // of the module that failed its trial; nil if none did
	counted    time.Time         // the last count of objects
	failures   int               // the number of consecutive problems with one spec
	about      string            // the spec that failures counts for
	closing    closing           // of a Reconciler that is being deleted
	announced  string            // the last news; see announce

	life sync.Mutex // serializes removals

	mu    sync.Mutex
	obj   *reconciler      // the last version of the object; guarded by mu
	busy  *busy            // the look that may take long, if one runs; guarded by mu
	noted string           // the record; guarded by mu
	audit v1alpha1.Audit   // guarded by mu
	ready metav1.Condition // the last one; guarded by mu

	store   counted // has the objects; nil if there are none; guarded by mu
	objects int64   // the number of objects in the status; guarded by mu
}

func (u *unit) setObject(o *reconciler) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.obj == nil {
		u.noted, u.forced = o.status.Record, o.status.LastHandledReconcileAt
		_, u.announced = news(&o.status)
		if r := o.status.Refused; r != nil && r.Reason == reasonDiffers {
			u.refusal = r
		}
	}
	if u.server.cfg.ShareObjects {
		u.noted = o.status.Record
	}
	u.obj = o
}

func (u *unit) object() *reconciler {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.obj
}

func (u *unit) record() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.noted
}

func (u *unit) setRecord(text string) *reconciler {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.noted = text
	return u.obj
}

// setReady records the condition Ready of a status.
func (u *unit) setReady(st *v1alpha1.Status) {
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.Ready); c != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.ready = *c
	}
}

// look adapts the unit to the spec, and returns what it observes.
func (u *unit) look(ctx context.Context, o *reconciler) *seen {
	in := &seen{generation: o.meta.Generation, requested: o.requested(), suspended: o.spec.Suspend}
	in.uncovered, in.shared = u.server.rt.Uncovered()
	now := time.Now()
	if in.count = now.Sub(u.counted) >= countEvery; in.count {
		u.counted = now
	}
	if o.spec.Suspend {
		if err := u.stop(ctx, true); err != nil {
			in.problem = &problem{reason: "Stopping", message: err.Error()}
		}
		return in
	}
	if about := fmt.Sprint(o.meta.Generation, o.meta.Annotations); about != u.about {
		u.about, u.failures = about, 0
	}
	err := u.step(ctx, o)
	in.describe(u, o)
	in.shadow, in.audit, in.mode = u.evidence(), u.auditOf(o), string(o.spec.Mode)
	in.auditing = in.audit != nil && !reflect.DeepEqual(in.audit, o.status.Audit)
	if u.module != nil && u.refused() {
		in.refused = u.refusal
	}
	if err != nil && !errors.As(err, &in.problem) {
		in.problem = &problem{reason: "Failed", message: err.Error()}
	}
	if p := in.problem; p != nil && p.reason == "ModuleRefused" && in.controller != nil && refused(nil, in) != nil {
		in.problem = nil // the refused revision has the reason
	}
	if c := in.controller; c != nil && c.Phase == admin.PhaseRunning {
		in.finalizer = u.finalizerOf(ctx, o, c)
	}
	if in.controller != nil && in.problem == nil {
		in.problem = startProblem(in.controller, u.controller)
	}
	if in.denied() {
		in.problem = cmp.Or(u.server.absentAccount(ctx, o), in.problem)
	}
	if u.failures++; in.problem == nil {
		u.failures = 0
	}
	return in
}

// describe adds the module and the controller of a unit.
func (in *seen) describe(u *unit, o *reconciler) {
	if m := u.module; m != nil {
		in.insecure = m.insecure
		in.wanted, in.verified = &v1alpha1.Revision{Digest: m.digest, Image: m.image, Version: m.version, Generation: o.meta.Generation}, m.verified
	}
	if u.controller != nil {
		st := u.controller.Status()
		in.controller = &st
	}
}

// startProblem returns the reason why a controller did not start, or nil if its start has not failed.
func startProblem(st *admin.Controller, c *wasmctl.Controller) *problem {
	if st.Phase != admin.PhaseFailed {
		return nil
	}
	err := c.Err()
	p := &problem{reason: "StartFailed", message: st.Message}
	switch {
	case errors.Is(err, share.ErrMemoryBudget):
		p.reason = "MemoryBudget"
	case errors.Is(err, wasmctl.ErrNotGranted):
		p.condition, p.reason, p.stalled = v1alpha1.Granted, "NotGranted", true
		p.message += "\nPut the rules into spec.grant.capabilities, or set spec.grant.manifest to true."
	case errors.Is(err, wasmctl.ErrDenied):
		p.condition, p.reason, p.denied = v1alpha1.Granted, "RightsMissing", true
	case errors.Is(err, wasmctl.ErrUnknownKind):
		p.condition, p.reason = v1alpha1.KindServed, "KindUnknown"
	case errors.Is(err, wasmctl.ErrNameTaken):
		p.reason = "NameTaken"
	case errors.Is(err, wasmctl.ErrRefused):
		p.reason, p.stalled = "ConfigRefused", true
	case errors.Is(err, wasmctl.ErrModule):
		p.reason, p.stalled = "ModuleRefused", true
	case errors.Is(err, wasmctl.ErrUsage):
		p.reason, p.stalled = "InvalidSpec", true
	}
	return p
}

// step fetches the module and the settings of the spec, and starts or updates the controller.
func (u *unit) step(ctx context.Context, o *reconciler) error {
	options, err := o.options(u.server.cfg.ServiceAccount, u.server.cfg.Bounds)
	if err != nil {
		return &problem{reason: "InvalidSpec", message: err.Error(), stalled: true}
	}
	options.Isolate = u.server.cfg.Isolation.class(o)
	options.Memo, options.Unshared, options.NoSwapEvents = u.server.cfg.Memo, !u.server.cfg.ShareObjects, true
	if err := u.fetch(ctx, o, options.As); err != nil {
		return err
	}
	if options.Config, options.Secrets, err = u.server.settings(ctx, o, options.As); err != nil {
		return err
	}
	options = u.audited(options)
	if u.controller == nil {
		return u.start(ctx, o, options)
	}
	return u.want(ctx, o, options)
}

// start adds the controller.
func (u *unit) start(ctx context.Context, o *reconciler, options wasmctl.ControllerOptions) error {
	m, err := u.first(ctx, o, options.As)
	if err != nil {
		return err
	}
	c, err := u.server.rt.Ensure(o.controller(), func() (wasmctl.Module, wasmctl.ControllerOptions, error) { return m, options, nil })
	if err != nil {
		return &problem{reason: "StartFailed", message: err.Error()}
	}
	u.controller, u.given = c, m
	return nil
}

// stopGrace is how long runs may continue after a Reconciler was suspended or deleted. It is short because the module may
// be hostile, and to suspend it is the emergency stop.
const stopGrace = time.Second

// stop stops the controller, if there is one. If hurry is set, it interrupts runs that do not end soon.
func (u *unit) stop(ctx context.Context, hurry bool) error {
	u.endTrial()
	if u.controller == nil {
		return nil
	}
	if hurry {
		defer time.AfterFunc(stopGrace, u.controller.Interrupt).Stop()
	}
	if err := u.controller.Stop(ctx); err != nil && !errors.Is(err, wasmctl.ErrForced) {
		return err
	}
	u.controller = nil
	u.setCount(nil)
	return nil
}
