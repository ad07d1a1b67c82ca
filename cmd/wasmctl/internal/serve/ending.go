// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

const (
	// startLimit is how long a module may fail to start before its objects are released without it.
	startLimit = 30 * time.Second
	// finalizeLimit is how long a module may finalize objects in a namespace that is being deleted. What it
	// needs for that may be gone, and cannot be created again.
	finalizeLimit = 2 * time.Minute
	// stopDelay is the time in which the other replicas stop the module, after the status has reasonReleasing.
	stopDelay = 5 * time.Second
	// maxFinalizers is the number of finalizers that a status remembers.
	maxFinalizers = 10
)

// Reasons of Ready while a Reconciler is being deleted.
const (
	reasonFinalizing = "Finalizing"
	reasonReleasing  = "Releasing"
)

// ending is what is known about a Reconciler that is being deleted. Its objects are those that have a
// finalizer of its module.
type ending struct {
	since       time.Duration // since the deletion
	orphan      bool          // the policy is Orphan
	terminating bool          // the namespace is being deleted, too

	unlisted bool // the objects could not be listed
	objects  int
	mine     int  // of these, the ones that the module watches, as far as that is known
	deleting int  // of mine, the ones that are being deleted
	rights   bool // the service account of the module may still list the objects

	writes    bool // the spec lets the module write: it is not suspended, and its mode is Enforce
	failed    bool // the module cannot be started
	stopped   bool // the module does not run in this process
	alone     bool // it does not run in other replicas either
	releasing bool // an earlier step was stepRelease
}

// step is the next step in the deletion of a Reconciler.
type step int

const (
	stepWait     step = iota // try again
	stepFinalize             // let the module run: it finalizes objects
	stepRelease              // stop the module, and take the finalizer off all objects
	stepEnd                  // stop the module, and let the Reconciler go
)

// next returns the next step. It is pure.
func (e *ending) next() step {
	switch {
	case e.orphan:
		return stepEnd
	case e.unlisted:
		return stepWait
	case e.objects > 0 && e.finalizes():
		return stepFinalize
	case e.objects == 0 && e.stopped && e.alone:
		return stepEnd
	}
	return stepRelease
}

// finalizes reports whether there are objects for the module to finalize, and whether it can. In a
// namespace that is being deleted, all objects soon are.
func (e *ending) finalizes() bool {
	switch {
	case !e.writes || !e.rights || e.releasing, e.failed && e.since >= startLimit:
		return false
	case e.terminating:
		return e.mine > 0 && e.since < finalizeLimit
	}
	return e.deleting > 0
}

// remember adds the finalizer that was seen to those of a status.
func remember(st *v1alpha1.Status, f *v1alpha1.Finalizer) {
	if f == nil || remembers(st, f) {
		return
	}
	all := append(slices.Clone(st.Finalizers), *f)
	st.Finalizers = all[max(0, len(all)-maxFinalizers):]
}

// remembers reports whether a status has a finalizer.
func remembers(st *v1alpha1.Status, f *v1alpha1.Finalizer) bool {
	return slices.ContainsFunc(st.Finalizers, func(o v1alpha1.Finalizer) bool {
		return o.Name == f.Name && o.For == f.For && slices.Equal(o.Namespaces, f.Namespaces)
	})
}

// waits describes the objects for which the deletion of a Reconciler waits. first is the first of them, and
// failure the last error.
func (e *ending) waits(s step, first, failure string) *problem {
	p := &problem{reason: reasonReleasing, message: "the Reconciler is being deleted: "}
	switch {
	case e.unlisted:
		p.reason = "ObjectsUnknown"
		p.message += "the objects with the finalizer of the module cannot be listed"
	case s == stepFinalize:
		p.reason = reasonFinalizing
		p.message += fmt.Sprintf("waiting until the module has finalized %s, first %s", humanize.Plural(max(e.deleting, 1), "object"), first)
	case e.objects > 0:
		p.message += fmt.Sprintf("taking the finalizer off %s, first %s", humanize.Plural(e.objects, "object"), first)
	default:
		p.message += "waiting until the module has stopped"
	}
	if failure != "" {
		p.message += "; last error: " + failure
	}
	if s == stepFinalize {
		p.message += "; to release them without cleanup, set spec.suspend to true"
	}
	return p
}
