// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Key identifies an object within its kind. Namespace is empty for a cluster-scoped kind.
type Key struct {
	Namespace string `msgpack:"namespace,omitempty"`
	Name      string `msgpack:"name"`
}

// String returns "namespace/name", or "name" if there is no namespace.
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

// ReasonType is the kind of trigger of a reconcile. It is only a hint: triggers are merged, and a guest must not base decisions on it (for
// this reason, kube-rs hides it from the reconciler).
type ReasonType string

// The reasons of this version. More will be added; a guest can log an unknown one, and must otherwise ignore it.
const (
	ReasonListed        ReasonType = "Listed"        // the object existed when its watch started, or was found by a relist
	ReasonObjectUpdated ReasonType = "ObjectUpdated" // the object was created or changed
	ReasonObjectDeleted ReasonType = "ObjectDeleted" // the object was deleted
	ReasonRelated       ReasonType = "Related"       // an object that it owns or refers to changed
	ReasonRequeue       ReasonType = "Requeue"       // its last run requested it
	ReasonRetry         ReasonType = "Retry"         // its last run failed
	ReasonModuleSwapped ReasonType = "ModuleSwapped" // the module was replaced
	ReasonTriggered     ReasonType = "Triggered"     // a user or a program requested it
	ReasonResync        ReasonType = "Resync"        // a period or a schedule requested all objects
	ReasonConfigChanged ReasonType = "ConfigChanged" // the settings were changed
)

// Reason is the trigger of a run. Resource ("deployments.apps") and Ref identify the related object for ReasonRelated.
type Reason struct {
	Type     ReasonType
	Resource string
	Ref      Key
}

// String returns the reason as it is logged, such as "Related deployments.apps default/web".
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
	// More are the other triggers that were merged into this run, in order and without repetitions. The list is bounded; Dropped counts
	// those that did not fit.
	More    []Reason
	Dropped int
	// Attempt is 1 for the first run, and increases with each failed run.
	Attempt int
	Key     Key
	// Object is the object's msgpack, or nil if it is gone.
	Object []byte
	// Stale means that the cache did not include the previous run's writes in time.
	Stale bool
	// ConfigGen counts changes of the settings.
	ConfigGen int64
	// Deadline is when the run will be interrupted.
	Deadline time.Time
	DryRun   bool
	// Caps lists the capabilities of this host.
	Caps []string
}

// Action is what a run requests next. The zero value waits for a change.
type Action struct {
	// Requeue requests another run After the end of this one, unless a trigger comes first.
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

// ErrorClass determines how an error of the guest is retried.
type ErrorClass string

// The classes of this version; a host treats an unknown one as transient.
const (
	ErrorTransient ErrorClass = "transient" // try again after the back-off
	ErrorPermanent ErrorClass = "permanent" // wait for a change
	ErrorConflict  ErrorClass = "conflict"  // another writer was faster
)

// ResultError is an error that a guest returned.
type ResultError struct {
	Class   ErrorClass
	Message string
	// Reason is a CamelCase word for programs; it may be empty.
	Reason string
	// After is when the guest wants to be called again; zero means that error_policy or the host's back-off decides.
	After time.Duration
}

// Error implements error.
func (e *ResultError) Error() string {
	if e.Reason == "" {
		return e.Message
	}
	return e.Reason + ": " + e.Message
}

// Declared is the desired state that a result declares. The host applies it after the run: children first, in order, then pruning, then
// status.
type Declared struct {
	// Apply contains one msgpack map per child, at most MaxItems, for server-side apply. The host makes the reconciled object their
	// controller.
	Apply [][]byte
	// Prune deletes the children of owned kinds that the reconciled object controls and that are not in Apply.
	Prune bool
	// Force takes over fields that another field manager owns.
	Force bool
	// Status is the msgpack of the status to apply to the reconciled object, or nil.
	Status []byte
}

// Result is the output of reconcile, finalize and error_policy.
type Result struct {
	Action Action
	// Declared is nil if the result declares nothing. In a result with an Error, it has only a Status.
	Declared *Declared
	// Error is not nil if the run failed.
	Error *ResultError
	// Unknown lists keys of the message that this host does not know. They were ignored; the host counts and reports them.
	Unknown []string
}

// FailureKind is the way in which a run failed.
type FailureKind string

// The kinds of failure.
const (
	FailureError   FailureKind = "error"   // the guest returned an error
	FailureTrap    FailureKind = "trap"    // the guest trapped, panicked or exited
	FailureTimeout FailureKind = "timeout" // the run exceeded its time limit
	FailureMemory  FailureKind = "memory"  // the guest exceeded its memory limit
	FailureOutput  FailureKind = "output"  // the guest's output is invalid
)

// Failure is the input of error_policy.
type Failure struct {
	ID  string
	Key Key
	// Object is the object as seen by the failed run, or nil.
	Object  []byte
	Error   ResultError
	Kind    FailureKind
	Attempt int
	// FirstFailed is when the first of the consecutive failed runs ended.
	FirstFailed time.Time
}

// CallError is the error of a guest call that did not return a result.
type CallError struct {
	Kind FailureKind
	// Func is the export that was called.
	Func string
	// Err is the cause.
	Err error
	// Output is the end of the guest's output to stdout and stderr.
	Output string
}

// Error implements error.
func (e *CallError) Error() string {
	s := fmt.Sprintf("guest[%s]: %s: %v", e.Func, e.Kind, e.Err)
	if panicked, ok := strings.CutPrefix(e.Err.Error(), "panic: "); ok && e.Kind == FailureTrap { // the words "panic" and "trap" would be redundant
		s = fmt.Sprintf("guest[%s]: panic: %s", e.Func, panicked)
	}
	if e.Output != "" {
		s += "\nguest output:\n" + e.Output
	}
	return s
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }
