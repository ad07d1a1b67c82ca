package wasmctl

// Reconciler is what a module does: two functions and what it says of itself.
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
	// ErrorPolicy says what to do after a failed run, also after one that
	// panicked or took too long: then it runs in a fresh instance. It is called
	// once for each, and what it says counts except after a permanent error.
	// Without one the host's back-off decides. Optional.
	ErrorPolicy func(ctx *Context, obj Object, failure Failure) Action
}

// registered is what Register was called with.
var registered *Reconciler

// Register makes r what this module does. Call it once, in an init function:
// main is not run in a module. It panics if there is no r.Reconcile or it is
// called twice; a module whose init panics is not loaded, and the host shows
// the message.
func Register(r Reconciler) {
	switch {
	case r.Reconcile == nil:
		panic("wasmctl.Register: Reconciler.Reconcile is nil")
	case registered != nil:
		panic("wasmctl.Register: called twice; a module has one reconciler")
	}
	registered = &r
}
