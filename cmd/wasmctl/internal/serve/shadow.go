// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// reasonDiffers is the reason for refusing a module that behaved differently from the live one.
const reasonDiffers = "Differs"

// stageShadow is the stage of a module that shadows the live one.
const stageShadow = "Shadow"

// shadow returns the options for comparing a new module with the live one, or nil if the spec does not
// request that.
func (r *reconciler) shadow() *wasmctl.ShadowOptions {
	if r.spec.Rollout == nil || r.spec.Rollout.Shadow == nil {
		return nil
	}
	s := r.spec.Rollout.Shadow
	o := &wasmctl.ShadowOptions{All: slices.Contains([]v1alpha1.Reconcile{"", v1alpha1.ReconcileAll}, r.spec.Rollout.Reconcile)}
	o.For, o.Count = s.Time.Or(v1alpha1.DefaultShadowTime), int(s.Runs)
	return o
}

// trial is a module that shadows the live one, before it takes over.
type trial struct {
	digest  string
	version string
	options wasmctl.ShadowOptions
	since   time.Time
	cancel  context.CancelFunc
	ended   chan struct{} // closed when sum and err are set
	sum     wasmctl.ShadowSummary
	err     error

	mu            sync.Mutex
	runs, differs uint64 // so far; guarded by mu
	first         string // the first difference; guarded by mu
}

// try begins a trial of the wanted module.
func (u *unit) try(ctx context.Context, o wasmctl.ShadowOptions) *trial {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the trial outlives the look
	t := &trial{digest: u.module.digest, version: u.module.version, options: o, since: time.Now(), cancel: cancel, ended: make(chan struct{})}
	c, m := u.controller, u.module
	go func() {
		defer close(t.ended)
		t.sum, t.err = c.Shadow(ctx, m, o, t.report)
	}()
	return t
}

// report records a compared run.
func (t *trial) report(c wasmctl.Compared) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	if len(c.Differences) == 0 {
		return nil
	}
	if t.differs++; t.differs == 1 {
		first := shadow.Difference(c.Differences[0])
		t.first = short(c.Object.String() + ": " + printer.Difference(&first))
	}
	return nil
}

// evidence returns the results of the trial so far, or nil if there is none.
func (u *unit) evidence() *v1alpha1.Candidate {
	t := u.trial
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &v1alpha1.Candidate{
		Digest: t.digest, Version: t.version, Stage: stageShadow, Since: metav1.NewTime(t.since),
		Runs: rough(t.runs), Differences: rough(t.differs), Difference: t.first,
	}
}

// endTrial ends the trial, if there is one, and waits for its end.
func (u *unit) endTrial() {
	if t := u.trial; t != nil {
		t.cancel()
		<-t.ended
		u.trial = nil
	}
}

// shadowed compares the wanted module with the live one, if the spec requests that, and reports whether
// it may take over. It does not block.
func (u *unit) shadowed(ctx context.Context, o *reconciler) (ok bool, err error) {
	want, digest := o.shadow(), u.module.digest
	switch {
	case want == nil:
		u.endTrial()
		u.refusal = nil
		return true, nil
	case u.refused():
		return false, nil
	case u.same == digest || u.controller.Status().Digest == digest:
		return true, nil
	case u.trial != nil && u.trial.options != *want:
		u.endTrial()
	}
	t := u.trial
	if t == nil {
		u.trial = u.try(ctx, *want)
		return false, nil
	}
	select {
	case <-t.ended:
	default:
		return false, nil
	}
	u.endTrial()
	return u.verdict(t)
}

// verdict evaluates a trial that has ended, and reports whether the module may take over.
func (u *unit) verdict(t *trial) (ok bool, err error) {
	switch err := t.err; {
	case passes(err):
		return false, nil // another trial begins
	case errors.Is(err, wasmctl.ErrShadowed), err != nil && t.runs > 0:
		return false, err
	case err != nil:
		u.refuse("ModuleRefused", err.Error())
		return false, nil
	case t.differs > 0:
		u.refuse(reasonDiffers, fmt.Sprintf("%v; the first: %s", &t.sum, t.first))
		return false, nil
	}
	u.same = t.digest
	return true, nil
}

// passes reports whether an error is due to what else happens to the controller, so that the request is
// repeated at the next look.
func passes(err error) bool {
	return slices.ContainsFunc([]error{wasmctl.ErrNotRunning, wasmctl.ErrStopping, wasmctl.ErrPreparing, wasmctl.ErrSuperseded}, func(passing error) bool {
		return errors.Is(err, passing)
	})
}

// refuse records why the wanted module does not take over.
func (u *unit) refuse(reason, message string) {
	u.refusal = &v1alpha1.Refused{Digest: u.module.digest, Reason: reason, Message: short(message), At: metav1.NewTime(time.Now())}
}

// refused reports whether the wanted module was refused after its trial.
func (u *unit) refused() bool { return u.refusal != nil && u.refusal.Digest == u.module.digest }
