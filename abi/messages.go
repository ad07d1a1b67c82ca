package abi

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Key names an object within its kind. Namespace is empty for a cluster-scoped
// kind.
type Key struct {
	Namespace string `msgpack:"namespace,omitempty"`
	Name      string `msgpack:"name"`
}

// String returns "namespace/name", or "name" where there is no namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace, then by name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// ReasonType says what made an object be reconciled. It is a hint: triggers
// are merged, and a guest must not decide by it what to do (kube-rs keeps it
// from the reconciler for this reason).
type ReasonType string

// The reasons of this version. More will be added; a guest shows one that it
// does not know and goes on.
const (
	ReasonListed        ReasonType = "Listed"        // the object was there when its watch started, or was found by a relist
	ReasonObjectUpdated ReasonType = "ObjectUpdated" // the object was created or changed
	ReasonObjectDeleted ReasonType = "ObjectDeleted" // the object was deleted
	ReasonRelated       ReasonType = "Related"       // an object that it owns or refers to changed
	ReasonRequeue       ReasonType = "Requeue"       // its last run asked for it
	ReasonRetry         ReasonType = "Retry"         // its last run failed
	ReasonModuleSwapped ReasonType = "ModuleSwapped" // the module was replaced
	ReasonTriggered     ReasonType = "Triggered"     // a user or a program asked for it
	ReasonResync        ReasonType = "Resync"        // a period or a schedule asked for all objects
	ReasonConfigChanged ReasonType = "ConfigChanged" // the settings were changed
)

// Reason is the trigger of a run. Resource ("deployments.apps") and Ref name
// the related object for ReasonRelated.
type Reason struct {
	Type     ReasonType
	Resource string
	Ref      Key
}

// String returns the reason as it is logged: "Related deployments.apps
// default/web".
func (r Reason) String() string {
	if r.Resource == "" {
		return string(r.Type)
	}
	return string(r.Type) + " " + r.Resource + " " + r.Ref.String()
}

// Request is the input of reconcile and finalize.
type Request struct {
	// ID is unique per run and appears in logs and traces.
	ID         string
	Controller string
	// Reason is the first of the triggers that led to this run.
	Reason Reason
	// More are the other triggers that were merged into this run, without
	// repetitions, in their order. The list is bounded; Dropped counts those that
	// had no room in it.
	More    []Reason
	Dropped int
	// Attempt is 1 for the first run and one more after each failed run.
	Attempt int
	Key     Key
	// Object is the object's msgpack, or nil where it is gone.
	Object []byte
	// Stale says that the cache did not reach the previous run's writes in time.
	Stale bool
	// ConfigGen counts changes of the settings.
	ConfigGen int64
	// Deadline is when the run will be interrupted.
	Deadline time.Time
	DryRun   bool
	// Caps names what this host can do.
	Caps []string
}

// Action is what a run asks for next. The zero value awaits a change.
type Action struct {
	// Requeue asks for another run After the end of this one, unless a trigger
	// comes first.
	Requeue bool
	After   time.Duration
}

// String returns "await change" or "requeue after d".
func (a Action) String() string {
	if !a.Requeue {
		return "await change"
	}
	return "requeue after " + a.After.String()
}

// ErrorClass says how an error of the guest is retried.
type ErrorClass string

// The classes of this version; a host treats one that it does not know as
// transient.
const (
	ErrorTransient ErrorClass = "transient" // try again after the back-off
	ErrorPermanent ErrorClass = "permanent" // wait for a change
	ErrorConflict  ErrorClass = "conflict"  // somebody else wrote first
)

// ResultError is an error that a guest returned.
type ResultError struct {
	Class   ErrorClass
	Message string
	// Reason is a CamelCase word for programs; may be empty.
	Reason string
	// After is when the guest wants to be called again; zero leaves it to
	// error_policy or the host's back-off.
	After time.Duration
}

// Error implements error.
func (e *ResultError) Error() string {
	if e.Reason == "" {
		return e.Message
	}
	return e.Reason + ": " + e.Message
}

// Declared is what a result wants to be true of the cluster. The host makes it
// so after the run: children first, in their order, then pruning, then status.
type Declared struct {
	// Apply holds one msgpack map per child, at most MaxItems, to be applied with
	// server-side apply. The host makes the reconciled object their controller.
	Apply [][]byte
	// Prune deletes the children of owned kinds that the reconciled object
	// controls and that Apply does not list.
	Prune bool
	// Force takes fields over that another field manager owns.
	Force bool
	// Status is the msgpack of the status to be applied to the reconciled object,
	// or nil.
	Status []byte
}

// Result is the output of reconcile, finalize and error_policy.
type Result struct {
	Action Action
	// Declared is nil where the result has no child to apply, no prune and no
	// status. With an Error, it has only a Status.
	Declared *Declared
	// Error is not nil where the run failed.
	Error *ResultError
	// Unknown lists keys of the message that this host does not know. They were
	// ignored; the host counts and reports them.
	Unknown []string
}

// FailureKind says how a run failed.
type FailureKind string

// The kinds of failure.
const (
	FailureError   FailureKind = "error"   // the guest returned an error
	FailureTrap    FailureKind = "trap"    // the guest trapped, panicked or exited
	FailureTimeout FailureKind = "timeout" // the run took longer than it may
	FailureMemory  FailureKind = "memory"  // the guest needed more memory than it may have
	FailureOutput  FailureKind = "output"  // what the guest returned cannot be read
)

// Failure is the input of error_policy.
type Failure struct {
	ID  string
	Key Key
	// Object is the object as the failed run saw it, or nil.
	Object  []byte
	Error   ResultError
	Kind    FailureKind
	Attempt int
	// FirstFailed is when the first of the failed runs in a row ended.
	FirstFailed time.Time
}

// CallError is the error of a guest call that did not end with a result.
type CallError struct {
	Kind FailureKind
	// Func is the export that was called.
	Func string
	// Err is what happened.
	Err error
	// Output is the tail of what the guest wrote to stdout and stderr.
	Output string
}

// Error implements error.
func (e *CallError) Error() string {
	s := fmt.Sprintf("guest[%s]: %s: %v", e.Func, e.Kind, e.Err)
	if panicked, ok := strings.CutPrefix(e.Err.Error(), "panic: "); ok && e.Kind == FailureTrap { // says it all
		s = fmt.Sprintf("guest[%s]: panic: %s", e.Func, panicked)
	}
	if e.Output != "" {
		s += "\nguest output:\n" + e.Output
	}
	return s
}

// Unwrap returns what happened.
func (e *CallError) Unwrap() error { return e.Err }
