// SPDX-License-Identifier: Apache-2.0

package uninstall

import "time"

const (
	// lastRuns is how long modules go on running after the rights of their process were deleted, to finalize objects.
	lastRuns = 10 * time.Second
	// removalTime is how long a process waits for the deletion of its rights after its Deployment was deleted. A command deletes the objects
	// of an installation one after the other.
	removalTime = 10 * time.Second
)

// view is what a process of wasmctl serve sees of its installation.
type view struct {
	deleting bool // one of its rights, or its namespace, is being deleted
	needed   bool // Reconcilers need the process
	removed  bool // its Deployment is being deleted or gone
	unseen   bool // the last attempt to see the installation failed
	stopping bool // a signal asks the process to stop, or its controllers have ended
	// since is the time since deleting became true or, before that, stopping.
	since time.Duration
}

// move is the next move of a process.
type move int

const (
	stay  move = iota // run on
	leave             // stop the modules, take all finalizers off, and let the rights go
	end               // stop the modules, and leave everything for the next process
)

// next returns the next move. It is pure.
func (v view) next() move {
	switch {
	case v.deleting && v.needed && v.since < lastRuns:
		return stay
	case v.deleting:
		return leave
	case v.stopping && (v.unseen || v.removed && v.needed) && v.since < removalTime:
		return stay
	case v.stopping:
		return end
	}
	return stay
}

// protects reports whether the rights must have the finalizer: while Reconcilers need the process. The API server does not add one to an
// object that is being deleted.
func (v view) protects() bool { return v.needed && !v.deleting }
