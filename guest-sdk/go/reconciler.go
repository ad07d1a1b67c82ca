// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "errors"

// Reconciler defines a module: its functions and its manifest.
type Reconciler struct {
	// Manifest declares the reconciled kind and the rights of the module.
	Manifest Manifest
	// Reconcile moves the cluster toward the desired state of obj. The host
	// calls it repeatedly, also without a change, so it must compare the
	// current state and not rely on events. An error fails the run; see
	// Permanent and RetryAfter. Required.
	//
	// obj does not exist (obj.Exists() is false) only if Manifest.For.Deletes
	// asks for calls after the object is gone.
	Reconcile func(ctx *Context, obj Object) (Action, error)
	// Finalize cleans up resources that the garbage collector does not know.
	// The host calls it instead of Reconcile after the deletion of obj was
	// requested. The host adds Manifest.Finalizer to each object before its
	// first Reconcile, and removes it after the first Finalize that returns
	// neither an error nor Requeue. Until then the object stays. Return Requeue
	// to wait for a slow cleanup: the host then calls Finalize again. The host
	// may also call it again after it succeeded, so it must accept that
	// everything is already gone. Optional; it needs Manifest.Finalizer.
	Finalize func(ctx *Context, obj Object) (Action, error)
	// ErrorPolicy decides what to do after a failed run. The host calls it once
	// for each failed run. After a panic or a timeout it runs in a fresh
	// instance. The host ignores its answer after a permanent error. Its Action
	// must be AwaitChange or Requeue, without children or a status. If nil, the
	// host's back-off decides. Optional.
	ErrorPolicy func(ctx *Context, obj Object, failure Failure) Action
	// Configure receives all settings when an instance of the module starts,
	// and again before the next call after the settings have changed. An error
	// refuses the settings: the host does not load the module, or all instances
	// continue with the old settings. Configure may set variables, which later
	// runs of this instance see; it must reset those that depend on earlier
	// settings. It may call only Context.Config. Optional; Context.Config works
	// without it.
	Configure func(ctx *Context, settings map[string]string) error
}

// registered is the reconciler given to Register, or returned by pending.
var registered *Reconciler

// pending is the function given to RegisterFunc, until current calls it.
// refused is the error that it returned.
var (
	pending func() (Reconciler, error)
	refused error
)

// Register registers r as the reconciler of this module. Call it once, in an
// init function: main does not run in a module. It panics if r.Reconcile is
// nil, if r is inconsistent, or if it is called twice. The host does not load a
// module whose init panics, and shows the message.
func Register(r Reconciler) {
	if registered != nil {
		panic("wasmctl.Register: called twice; a module has one reconciler")
	}
	if problem := r.problem(); problem != "" {
		panic("wasmctl.Register: " + problem)
	}
	registered = &r
}

// RegisterFunc is like Register, for a module that does not know its reconciler
// yet when its init functions run. The host's first call of an instance calls
// load. If load returns an error, the host does not load the module, and shows
// the error.
func RegisterFunc(load func() (Reconciler, error)) {
	if registered != nil || pending != nil {
		panic("wasmctl.RegisterFunc: called twice, or in addition to Register; a module has one reconciler")
	}
	pending = load
}

// current returns the registered reconciler, or the reason why there is none.
func current() (*Reconciler, error) {
	switch {
	case registered != nil || refused != nil:
		return registered, refused
	case pending == nil:
		return nil, errNotRegistered
	}
	load := pending
	pending = nil
	r, err := load()
	if problem := r.problem(); err == nil && problem != "" {
		err = errors.New(problem)
	}
	if err != nil {
		refused = err
		return nil, err
	}
	registered = &r
	return registered, nil
}

// problem returns the reason why r cannot run, or "" if it can.
func (r *Reconciler) problem() string {
	m := &r.Manifest
	switch {
	case r.Reconcile == nil:
		return "Reconciler.Reconcile is nil"
	case r.Finalize != nil && m.Finalizer == "":
		return "Reconciler.Finalize needs a name in Manifest.Finalizer, \"example.com/cleanup\""
	case r.Finalize == nil && m.Finalizer != "":
		return "Manifest.Finalizer needs Reconciler.Finalize, otherwise deleted objects never go away"
	}
	for i := range m.Watches {
		w := &m.Watches[i]
		if w.Mapper != nil && w.Map != "" && w.Map != byFunc {
			return "the watch of " + w.Kind + " has a Mapper and Map " + w.Map
		}
		if w.Mapper == nil && (w.Map == "" || w.Map == byFunc) {
			return "the watch of " + w.Kind + " has neither a Mapper nor a Map"
		}
		for j := range m.Watches[:i] {
			if v := &m.Watches[j]; w.Mapper != nil && v.Mapper != nil && v.of(w.Group, w.Kind) {
				return "two watches of " + w.Kind + " have a Mapper; only one may have one"
			}
		}
	}
	return m.webhookProblem()
}
