// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Outcomes that are neither success nor failure; match them with errors.Is. The guest was not called, or its answer does not matter, and
// the object waits for a change.
var (
	// ErrObjectNotFound is the outcome for an object that is gone: the module is not called (rule 20, as in kube-rs).
	ErrObjectNotFound = errors.New("object not found")
	// ErrPaused is the outcome for an object with PausedAnnotation. Its number of failures does not change.
	ErrPaused = errors.New("object is paused: annotation " + PausedAnnotation)
	// ErrDeleting is the outcome for an object that is being deleted and does not have the module's finalizer: its cleanup is done, or was
	// never required (rule 21).
	ErrDeleting = errors.New("object is being deleted and needs no cleanup")
	// ErrInterrupted is the outcome of a run that was interrupted because the process is stopping. It is not a failure of the object.
	ErrInterrupted = errors.New("interrupted: the controller is stopping")
	// ErrQuarantined is the outcome for an object in quarantine if neither the object nor the module has changed. Action has the time of
	// the next attempt.
	ErrQuarantined = errors.New("object is quarantined: its runs keep trapping or exceeding limits")
)

// Outcome is the result of one run.
type Outcome struct {
	// ID is the run's id, as seen by the guest; empty if no guest was needed.
	ID string
	// Key is the object that was reconciled; Reasons are the reasons of the run.
	Key     abi.Key
	Reasons queue.Reasons
	// Finalize means that the object is being deleted, and that the run called finalize.
	Finalize bool
	// Attempt is 1 for a first run, and increases with each failed run.
	Attempt int
	// Revision is the module revision that ran, or failed to provide a guest; 0 if there was none.
	Revision uint64
	// Action is what should happen next.
	Action abi.Action
	// DecidedBy is what decided Action; empty if no decision was needed.
	DecidedBy Decider
	// Delay is how long the object must not run, whatever triggers it, because its writes keep triggering it. Loop is not nil for the run
	// that revealed a hot loop.
	Delay time.Duration
	Loop  *guard.Decision
	// Err is nil for success; ErrObjectNotFound, ErrPaused, ErrDeleting, ErrInterrupted or ErrQuarantined; or the failure: an
	// *abi.ResultError of the guest or of Cluster, an *abi.CallError, or a fault of the host.
	Err error
	// Failure is the kind of failure. It is empty if the run did not fail; Err is then nil or one of the errors above that are not
	// failures.
	Failure abi.FailureKind
	// Writes counts the accepted writes of the run, by the guest and by what it declared.
	Writes int
	// Fuel is the amount that the guest has used, including error_policy, in the unit of docs/metering.md; 0 if it is not metered.
	Fuel int64
	// Cost is the cost of the run; see also HostTime.
	Cost abi.Cost
	// Stale means that the cache did not include the previous run's writes in time; Waited is how long the run waited for them.
	Stale  bool
	Waited time.Duration
	// Started is when the run began, and Duration how long it took, including Waited and error_policy.
	Started  time.Time
	Duration time.Duration
	// Queued is how long the object was ready before the run began; 0 if unknown.
	Queued time.Duration
}

// Failed reports whether the run counts as a failure.
func (o *Outcome) Failed() bool { return o.Failure != "" }

// HostTime is the elapsed time that the host used for the run: neither time of the guest nor waiting.
func (o *Outcome) HostTime() time.Duration {
	return max(0, o.Duration-o.Waited-o.Cost.Guest-o.Cost.Idle)
}

// Decider names what chose the action of an outcome.
type Decider string

// The deciders.
const (
	DecidedByReconcile   Decider = "reconcile"
	DecidedByFinalize    Decider = "finalize"
	DecidedByErrorPolicy Decider = "error_policy"
	DecidedByError       Decider = "error"   // the error itself: permanent, a conflict, or with a retry time
	DecidedByBackoff     Decider = "backoff" // the host's
	DecidedByQuarantine  Decider = "quarantine"
	DecidedByMemo        Decider = "memo"  // the remembered run
	DecidedByGuard       Decider = "guard" // the hot-loop guard: the run requested the next one almost at once, like those before it
)
