// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
)

// step is the first step of a run.
type step uint8

const (
	stepNone         step = iota // nothing to do: no guest is needed
	stepReconcile                // call reconcile
	stepAddFinalizer             // add the finalizer, then reconcile
	stepFinalize                 // call finalize, then remove the finalizer
)

// firstStep implements the table of rule 21. It differs from that of kube-rs' finalizer() in that the run continues after the finalizer was
// added, because a predicate may hide the resulting event.
//
//	finalizer  being deleted
//	absent     no             add it, then reconcile
//	present    no             reconcile
//	present    yes            finalize; after success remove it
//	absent     yes            nothing
//
// A module without a finalizer always reconciles.
func firstStep(finalizer string, h *head) step {
	switch {
	case finalizer == "":
		return stepReconcile
	case h.deleting && h.finalizer:
		return stepFinalize
	case h.deleting:
		return stepNone
	case h.finalizer:
		return stepReconcile
	}
	return stepAddFinalizer
}

// prepare adds the finalizer if that is the first step. It returns the step to perform on the updated object, and the context for it.
func (r *run) prepare(ctx context.Context, s step) (context.Context, step, error) {
	if s != stepAddFinalizer {
		return ctx, s, nil
	}
	name := r.a.cfg.Finalizer
	bounded, cancel := context.WithTimeout(ctx, r.a.cfg.ClusterTimeout)
	defer cancel()
	object, err := r.a.cfg.Cluster.AddFinalizer(bounded, r.object, name)
	if err != nil {
		return ctx, s, fmt.Errorf("finalizer[%s]: add: %w", name, err)
	}
	h, err := readHead(object, name)
	if err != nil {
		return ctx, s, fmt.Errorf("finalizer[%s]: add: answer: %w", name, err)
	}
	if h.paused { // the object was paused meanwhile
		r.head = h
		return ctx, stepNone, nil
	}
	if s = firstStep(name, &h); s == stepAddFinalizer {
		return ctx, s, &abi.ResultError{Class: abi.ErrorConflict, Reason: "FinalizerLost", Message: "finalizer[" + name + "]: add: it was removed again"}
	}
	r.object, r.head = object, h
	info := r.known.info // a copy, because the Run in a context must not change
	info.Object = object
	return abi.WithRun(ctx, &info), s, nil
}

// removeFinalizer removes the finalizer after the cleanup, so that the object can be deleted.
func (r *run) removeFinalizer(ctx context.Context) error {
	name := r.a.cfg.Finalizer
	ctx, cancel := context.WithTimeout(ctx, r.a.cfg.ClusterTimeout)
	defer cancel()
	if err := r.a.cfg.Cluster.RemoveFinalizer(ctx, r.object, name); err != nil {
		return fmt.Errorf("finalizer[%s]: remove: %w", name, err)
	}
	return nil
}
