// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Run is one run of one object, as it is stored, as the admin socket sends it, and as
// wasmctl explain prints it.
type Run struct {
	// ID is the reconcile id; empty if no guest was called.
	ID string `json:"id,omitempty"`
	// TraceID is the ID of the run's trace; empty if no trace is written. It is
	// not stored: the reader of a Recorder sets it.
	TraceID string `json:"traceId,omitempty"`
	// Reasons are the triggers of the run. It was due for Queued before it began at
	// Started, and took Took.
	Reasons queue.Reasons `json:"reasons"`
	Started time.Time     `json:"started"`
	Queued  Duration      `json:"queued"`
	Took    Duration      `json:"took"`
	// Revision is the revision of the module; 0 if no guest was called.
	Revision uint64 `json:"revision,omitempty"`
	// Attempt is 1 for a first run, and increases with each failed run.
	Attempt  int  `json:"attempt,omitempty"`
	Finalize bool `json:"finalize,omitempty"`
	Ending
	// Fuel is the work of the guest, in the unit of docs/metering.md.
	Fuel int64 `json:"fuel,omitempty"`
	// Stale reports that the cache did not yet have the writes of the previous run.
	Stale bool `json:"stale,omitempty"`
	Deeds
	// Cost is the cost of the run.
	Cost Cost `json:"-"`
	// Guest is the call of the guest.
	Guest Call `json:"-"`
}

// Ending is the result of a run.
type Ending struct {
	Result Result `json:"result"`
	// Kind is the kind of a failure. Error is the reason of a result other than
	// Succeeded.
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
	// NoChange reports that the run was skipped because its input had not changed since the
	// previous run. Of several such runs in a row, only the last is stored.
	NoChange bool `json:"-"`
	// Next is the action after the run, and DecidedBy names its source.
	Next      Next   `json:"next"`
	DecidedBy string `json:"decidedBy,omitempty"`
	// Delay is the delay of an object in a hot loop.
	Delay Duration `json:"delay,omitempty"`
}

// Result is the way in which a run ended.
type Result string

// The results.
const (
	ResultSucceeded   Result = "succeeded"
	ResultFailed      Result = "failed"
	ResultSkipped     Result = "skipped" // there was no reason to call the guest, or to use its answer
	ResultInterrupted Result = "interrupted"
)

// Call is one call of a guest. Both fields are zero if there was none; Took is
// zero if Recorder.Returned was not called.
type Call struct {
	Started time.Time
	Took    time.Duration
}

// Deeds are the input and the operations of a run. The Recorder fills them in.
type Deeds struct {
	// First reports that no earlier state of the object was known. Otherwise Changes are
	// the changes since the previous run.
	First   bool          `json:"first,omitempty"`
	Changes []diff.Change `json:"changes,omitempty"`
	// Related are the known changes, since the previous run, of the related objects that
	// Reasons names.
	Related []Related `json:"related,omitempty"`
	// Operations are the first MaxOperations that the run requested, and MoreOperations
	// counts the others.
	Operations     []Operation `json:"operations,omitempty"`
	MoreOperations int         `json:"moreOperations,omitempty"`
}

// MaxOperations is the maximum number of operations of a run that are stored.
const MaxOperations = 32

// Operation is an operation that a run requested, with its result.
type Operation struct {
	// Name is an abi.Op, and Resource a resource and its group: "deployments.apps".
	Name        string `json:"name"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	// Object has no name for lists.
	Object Object `json:"object,omitzero"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Effect is the result. Started and Took are zero if no request was sent.
	Effect  Effect    `json:"effect"`
	Started time.Time `json:"-"`
	Took    Duration  `json:"took,omitempty"`
	// Error is the reason of a failure.
	Error string `json:"error,omitempty"`
	// TakenFrom are the field managers whose fields the controller took over.
	TakenFrom []string `json:"takenFrom,omitempty"`
	// Changes are the changes that a write made. The values of Secrets are hidden.
	Changes []diff.Change `json:"changes,omitempty"`
}

// Effect is the result of an operation.
type Effect string

// The effects.
const (
	Read      Effect = "read"
	Created   Effect = "created"
	Changed   Effect = "changed"
	Unchanged Effect = "unchanged"
	Written   Effect = "written" // the previous state is unknown
	Deleted   Effect = "deleted"
	Denied    Effect = "denied" // by the policy
	Failed    Effect = "failed"
)

// Running is a run that has not ended.
type Running struct {
	ID      string        `json:"id,omitempty"`
	Since   time.Time     `json:"since"`
	Reasons queue.Reasons `json:"reasons"`
	// Operations are the first MaxOperations so far.
	Operations []Operation `json:"operations,omitempty"`
	Key        abi.Key     `json:"-"`
	Revision   uint64      `json:"-"`
	// Object is the packed object as the run sees it; nil if it is gone. Values that must
	// be hidden have been removed.
	Object []byte `json:"-"`

	more      int // operations that exceed MaxOperations
	guestTook time.Duration
}

// Hidden counts the events of an object that the predicates of the watch have filtered out
// since its last run.
type Hidden struct {
	Count uint64    `json:"count"`
	Last  time.Time `json:"last"`
	// Unchanged names the predicates that saw no change in the last event: "generation".
	Unchanged string `json:"unchanged"`
}

// bytes returns the approximate memory of a run, with its strings and slices.
func (r *Run) bytes() int {
	n := runSize + len(r.ID) + len(r.Error) + reasonSize*len(r.Reasons.More) + changesBytes(r.Changes)
	for i := range r.Related {
		c := &r.Related[i]
		n += int(unsafe.Sizeof(*c)) + len(c.Resource) + c.Object.bytes() + changesBytes(c.Changes)
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		n += operationSize + len(o.Resource) + o.Object.bytes() + len(o.Error) + changesBytes(o.Changes)
		for _, m := range o.TakenFrom {
			n += int(unsafe.Sizeof(m)) + len(m)
		}
	}
	return n
}

func changesBytes(changes []diff.Change) int {
	n := 0
	for i := range changes {
		n += changeSize + len(changes[i].Path) + len(changes[i].Before) + len(changes[i].After)
	}
	return n
}

// Hide replaces each text of the changes by the result of hide, in new memory, because a
// Run that a Recorder has returned shares its slices.
func (d *Deeds) Hide(hide func(string) string) {
	d.Changes = hidden(d.Changes, hide)
	d.Related = slices.Clone(d.Related)
	for i := range d.Related {
		d.Related[i].Changes = hidden(d.Related[i].Changes, hide)
	}
	d.Operations = slices.Clone(d.Operations)
	for i := range d.Operations {
		d.Operations[i].Hide(hide)
	}
}

// Hide replaces each text of the changes by the result of hide, in new memory.
func (op *Operation) Hide(hide func(string) string) { op.Changes = hidden(op.Changes, hide) }

func hidden(changes []diff.Change, hide func(string) string) []diff.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		c := &changes[i]
		c.Path, c.Before, c.After = hide(c.Path), hide(c.Before), hide(c.After)
	}
	return changes
}
