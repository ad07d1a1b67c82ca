package wasmctl

// Reconciler is what a module does: some functions, and what it says of itself.
type Reconciler struct {
	// Manifest says which kind is reconciled and what the module may do.
	Manifest Manifest
	// Reconcile brings the world closer to what obj asks for. It is called
	// again and again, also without a change, so it must look at what is there
	// and not at what happened. An error makes the run a failed one; see
	// Permanent and RetryAfter. Required.
	//
	// obj does not exist (obj.Exists() is false) only if Manifest.For.Deletes
	// asks for calls after the object is gone.
	Reconcile func(ctx *Context, obj Object) (Action, error)
	// Finalize cleans up what the garbage collector does not know, in the place
	// of Reconcile, once obj was asked to be deleted. The host puts
	// Manifest.Finalizer on each object before its first Reconcile, and takes it
	// off after the first Finalize that returns neither an error nor Requeue:
	// until then the object stays, and with Requeue it is called again, to wait
	// for something that takes its time. It may also be called again after it
	// succeeded: what is gone already is no error. Optional; it goes with
	// Manifest.Finalizer.
	Finalize func(ctx *Context, obj Object) (Action, error)
	// ErrorPolicy says what to do after a failed run, also after one that
	// panicked or took too long: then it runs in a fresh instance. It is called
	// once for each, and what it says counts except after a permanent error. It
	// declares nothing: its Action is AwaitChange or Requeue. Without one the
	// host's back-off decides. Optional.
	ErrorPolicy func(ctx *Context, obj Object, failure Failure) Action
	// Configure is given all settings when an instance of the module starts and
	// before its next call when they have changed. An error refuses them: the
	// module is not loaded, or all instances go on with those they had. What it
	// keeps in variables is there in later runs of this instance; nothing of
	// earlier settings may stay. It calls nothing but Context.Config. Optional;
	// Context.Config works without it.
	Configure func(ctx *Context, settings map[string]string) error
}

// registered is what Register was called with.
var registered *Reconciler

// Register makes r what this module does. Call it once, in an init function:
// main is not run in a module. It panics if there is no r.Reconcile, if the
// parts of r do not fit together or if it is called twice; a module whose init
// panics is not loaded, and the host shows the message.
func Register(r Reconciler) {
	if registered != nil {
		panic("wasmctl.Register: called twice; a module has one reconciler")
	}
	if problem := r.problem(); problem != "" {
		panic("wasmctl.Register: " + problem)
	}
	registered = &r
}

// problem says why r cannot run; empty if it can.
func (r *Reconciler) problem() string {
	m := &r.Manifest
	switch {
	case r.Reconcile == nil:
		return "Reconciler.Reconcile is nil"
	case r.Finalize != nil && m.Finalizer == "":
		return "Reconciler.Finalize needs a name in Manifest.Finalizer, \"example.com/cleanup\""
	case r.Finalize == nil && m.Finalizer != "":
		return "Manifest.Finalizer needs Reconciler.Finalize, or objects would never go"
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
				return "two watches of " + w.Kind + " have a Mapper; an event does not say which of them it is of"
			}
		}
	}
	return ""
}
