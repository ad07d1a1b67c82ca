// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
)

// Observer observes each run. Its methods are called on the goroutine of the run, before the object is released, and concurrently for
// several objects: they must be quick. Their arguments are valid only during the call.
type Observer interface {
	// Started is called before a guest is called for a run.
	Started(s *Started)
	// Returned is called after reconcile or finalize of the run with this id has returned, before anything that its result declares is
	// applied.
	Returned(id string)
	// Ended is called when the run is over and out is complete. If a run calls no guest, Started and Returned are not called for it.
	Ended(out *Outcome)
}

// EndedFunc is an Observer of only the ends of runs.
type EndedFunc func(*Outcome)

// Started implements Observer.
func (EndedFunc) Started(*Started) {}

// Returned implements Observer.
func (EndedFunc) Returned(string) {}

// Ended implements Observer.
func (f EndedFunc) Ended(out *Outcome) { f(out) }

// Started describes a run for which a guest is about to be called.
type Started struct {
	// Revision is the module revision of the guest.
	Revision uint64
	// Request is the guest's input.
	Request *abi.Request
	// Finalize means that finalize is called, and not reconcile.
	Finalize bool
}

// observed calls the guest, between Started and Returned.
func (r *run) observed(ctx context.Context) (res abi.Result, err error) {
	o := r.a.cfg.Observer
	if o != nil {
		r.startInfo = Started{Revision: r.out.Revision, Request: &r.req, Finalize: r.out.Finalize}
		o.Started(&r.startInfo)
	}
	if r.out.Finalize {
		res, err = r.guest.Finalize(ctx, &r.req)
	} else {
		res, err = r.guest.Reconcile(ctx, &r.req)
	}
	if o != nil {
		o.Returned(r.out.ID)
	}
	return res, err
}
