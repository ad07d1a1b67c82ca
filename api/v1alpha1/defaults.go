// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"
)

// Defaults that other packages also use.
const (
	DefaultProbation  = time.Minute
	DefaultCanaryTime = 5 * time.Minute
	DefaultShadowTime = time.Minute
	DefaultHistory    = "1Mi"
)

// Default sets the fields that have a default of their own. For those that remain empty,
// the module's manifest or the host decides.
func (s *ControllerSpec) Default() {
	if s.Module.Watch == nil {
		s.Module.Watch = new(true)
	}
	setDefault(&s.Memo, MemoOff)
	setDefault(&s.History, DefaultHistory)
	setDefault(&s.Mode, ModeEnforce)
	r := Rollout{}
	if s.Rollout != nil {
		r = *s.Rollout
	}
	s.Rollout = &r // do not change the caller's
	setDefault(&r.Reconcile, ReconcileAll)
	if r.AllowMoreRights == nil {
		r.AllowMoreRights = new(false)
	}
	if r.AutoRollback == nil {
		r.AutoRollback = new(true)
	}
	setDefault(&r.Probation, Duration(DefaultProbation.String()))
	if !*r.AutoRollback {
		r.Probation = "0s"
	}
	if r.Canary != nil {
		c := *r.Canary
		setDefault(&c.Time, Duration(DefaultCanaryTime.String()))
		r.Canary = &c
	}
	if r.Shadow != nil {
		c := *r.Shadow
		setDefault(&c.Time, Duration(DefaultShadowTime.String()))
		r.Shadow = &c
	}
}

// setDefault sets a field if it is empty.
func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// Tenant returns the rollout of a Reconciler: by default, a new module may have rights that
// its predecessor did not have, because the grant is the limit. The receiver may be nil.
func (r *Rollout) Tenant() *Rollout {
	out := Rollout{}
	if r != nil {
		out = *r
	}
	if out.AllowMoreRights == nil {
		out.AllowMoreRights = new(true)
	}
	return &out
}
