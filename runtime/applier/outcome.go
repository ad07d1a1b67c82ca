package applier

import (
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Outcomes that are neither success nor failure: match them with errors.Is. The
// guest was not called, or its answer does not matter, and the object waits for
// a change.
var (
	// ErrObjectNotFound is the outcome for an object that is gone: the module is
	// not called (rule 20, as in kube-rs).
	ErrObjectNotFound = errors.New("object not found")
	// ErrPaused is the outcome for an object with PausedAnnotation. Its number
	// of failures is kept.
	ErrPaused = errors.New("object is paused: annotation " + PausedAnnotation)
	// ErrDeleting is the outcome for an object that is being deleted and does not
	// have the module's finalizer: its clean-up is done, or was never due (rule 21).
	ErrDeleting = errors.New("object is being deleted and needs no cleanup")
	// ErrInterrupted is the outcome of a run that was cut short because the
	// process stops. It is not a failure of the object.
	ErrInterrupted = errors.New("interrupted: the controller is stopping")
	// ErrQuarantined is the outcome for an object in quarantine where neither it
	// nor the module has changed. It is retried when Action says.
	ErrQuarantined = errors.New("object is quarantined: its runs keep trapping or exceeding limits")
)

// Outcome is the result of one run.
type Outcome struct {
	// ID is the run's id, as the guest saw it; empty where no guest was wanted.
	ID string
	// Key is the object that was reconciled, Reasons why it was.
	Key     abi.Key
	Reasons queue.Reasons
	// Finalize says that the object is being deleted, and that the run was of
	// finalize.
	Finalize bool
	// Attempt is 1 for a first run and one more after each failed run.
	Attempt int
	// FirstFailed is when the first of the failed runs in a row ended; zero for a
	// run that did not fail.
	FirstFailed time.Time
	// Revision is the module revision that ran, or could not give a guest; 0
	// where there was none.
	Revision uint64
	// Action is what happens next.
	Action abi.Action
	// DecidedBy says what chose Action; empty if no decision was needed.
	DecidedBy Decider
	// Delay is how long the object must not run, whatever triggers it: it is in a
	// hot loop. Loop is not nil at the run by which that was found.
	Delay time.Duration
	Loop  *guard.Decision
	// Err is nil for success, one of ErrObjectNotFound, ErrPaused, ErrDeleting,
	// ErrInterrupted and ErrQuarantined, or what went wrong: an *abi.ResultError of the guest or of
	// Cluster, an *abi.CallError, or a fault of the host.
	Err error
	// Failure is the kind of failure; empty where the run did not fail: Err is then
	// nil or one of those above that are no failure.
	Failure abi.FailureKind
	// Unknown lists keys of the guest's result that this host does not know.
	Unknown []string
	// Writes counts the writes of the run that the API server accepted, the
	// guest's and those of what it declared.
	Writes int
	// Fuel is what the guest has used, error_policy included, in the unit of
	// docs/metering.md; 0 where it is not metered.
	Fuel int64
	// Cost is what the run has cost: HostTime belongs to it.
	Cost abi.Cost
	// Stale says that the cache did not reach the previous run's writes in time,
	// Waited how long the run waited for it.
	Stale  bool
	Waited time.Duration
	// Started is when the run began, Duration how long it took, Waited and
	// error_policy included.
	Started  time.Time
	Duration time.Duration
	// Queued is how long the object was ready before the run began; 0 where Apply
	// does not know it.
	Queued time.Duration
}

// Failed reports whether the run counts as a failed one.
func (o *Outcome) Failed() bool { return o.Failure != "" }

// HostTime is how long the host worked for the run, by the clock: what is neither
// the guest's nor waiting.
func (o *Outcome) HostTime() time.Duration {
	return max(0, o.Duration-o.Waited-o.Cost.Guest-o.Cost.Idle)
}

// Decider names who chose the action of an outcome.
type Decider string

// The deciders.
const (
	DecidedByReconcile   Decider = "reconcile"
	DecidedByFinalize    Decider = "finalize"
	DecidedByErrorPolicy Decider = "error_policy"
	DecidedByError       Decider = "error"   // the error itself: permanent, a conflict, or with a time to come back
	DecidedByBackoff     Decider = "backoff" // the host's
	DecidedByQuarantine  Decider = "quarantine"
	DecidedByMemo        Decider = "memo" // the run that is remembered
)
