package history

import (
	"slices"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Run is one run of one object: as it is stored, as the admin socket sends it,
// and as wasmctl explain prints it.
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
	// Attempt is 1 for a first run, and one more after each failed one.
	Attempt  int  `json:"attempt,omitempty"`
	Finalize bool `json:"finalize,omitempty"`
	Ending
	// Fuel is the work of the guest, in the unit of docs/metering.md.
	Fuel int64 `json:"fuel,omitempty"`
	// Stale reports that the cache did not have the writes of the run before.
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
	// NoChange reports that the run was skipped because nothing it would read had
	// changed since the run before. Of several such runs in a row the last is stored.
	NoChange bool `json:"-"`
	// Next is what happens next, and DecidedBy names who chose it.
	Next      Next   `json:"next"`
	DecidedBy string `json:"decidedBy,omitempty"`
	// Delay is how long the object is delayed because it is in a hot loop.
	Delay Duration `json:"delay,omitempty"`
}

// Result is how a run ended.
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

// Deeds are what a run saw and did. The Recorder fills it in.
type Deeds struct {
	// First reports that no earlier state of the object was known. Otherwise Changes
	// are the changes since the run before.
	First   bool          `json:"first,omitempty"`
	Changes []diff.Change `json:"changes,omitempty"`
	// Related are the changes, since the run before, of the related objects that
	// Reasons names, as far as they are known.
	Related []Related `json:"related,omitempty"`
	// Operations are the first MaxOperations that the run asked for, and
	// MoreOperations counts the others.
	Operations     []Operation `json:"operations,omitempty"`
	MoreOperations int         `json:"moreOperations,omitempty"`
}

// MaxOperations is the maximum number of operations of a run that are stored.
const MaxOperations = 32

// Operation is one operation that a run asked for, with its result.
type Operation struct {
	// Name is an abi.Op, and Resource a resource and its group: "deployments.apps".
	Name        string `json:"name"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	// Object has no name for lists.
	Object Object `json:"object,omitzero"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Effect is its result. Started and Took are zero if nothing was sent.
	Effect  Effect    `json:"effect"`
	Started time.Time `json:"-"`
	Took    Duration  `json:"took,omitempty"`
	// Error is the reason of a failure.
	Error string `json:"error,omitempty"`
	// Changes are those that a write made. The values of Secrets are hidden.
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
	Written   Effect = "written" // the state before is not known
	Deleted   Effect = "deleted"
	Denied    Effect = "denied" // by the policy
	Failed    Effect = "failed"
)

// Running is a run that has not ended.
type Running struct {
	ID      string        `json:"id,omitempty"`
	Since   time.Time     `json:"since"`
	Reasons queue.Reasons `json:"reasons"`
	// Operations are the first MaxOperations until now.
	Operations []Operation `json:"operations,omitempty"`
	Key        abi.Key     `json:"-"`
	Revision   uint64      `json:"-"`
	// Object is the packed object as the run sees it; nil if it is gone. It contains
	// no value that must be hidden.
	Object []byte `json:"-"`

	more      int // operations without room in Operations
	guestTook time.Duration
}

// Hidden counts the events of an object that the predicates of the watch have
// hidden since its last run.
type Hidden struct {
	Count uint64    `json:"count"`
	Last  time.Time `json:"last"`
	// Unchanged names the predicates that saw no change in the last event:
	// "generation".
	Unchanged string `json:"unchanged"`
}

// bytes is about how much memory a run takes, with its strings and slices.
func (r *Run) bytes() int {
	n := runSize + len(r.ID) + len(r.Error) + reasonSize*len(r.Reasons.More) + changesBytes(r.Changes)
	for i := range r.Related {
		c := &r.Related[i]
		n += int(unsafe.Sizeof(*c)) + len(c.Resource) + c.Object.bytes() + changesBytes(c.Changes)
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		n += operationSize + len(o.Resource) + o.Object.bytes() + len(o.Error) + changesBytes(o.Changes)
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

// Hide replaces each text of the changes by the result of hide, in memory of its
// own: a Run that a Recorder has returned shares its slices.
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

// Hide is Deeds.Hide for one operation.
func (op *Operation) Hide(hide func(string) string) { op.Changes = hidden(op.Changes, hide) }

func hidden(changes []diff.Change, hide func(string) string) []diff.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		c := &changes[i]
		c.Path, c.Before, c.After = hide(c.Path), hide(c.Before), hide(c.After)
	}
	return changes
}

// States are the states of the object of an operation, packed, without values
// that must be hidden. They must not change. Each may be nil.
type States struct {
	// Before is the state before the operation; if it is nil, the one that the
	// Recorder knows.
	Before []byte
	// Sent is the request, and After the whole object in the answer.
	Sent, After []byte
}

// Settle sets the changes that a Written or a Created operation has made, and
// makes its effect exact.
func (op *Operation) Settle(about States, bounds diff.Bounds) {
	from, to := about.Before, about.After
	switch {
	case op.Effect == Created, op.Effect == Written && (from == nil || to == nil):
		if from, to = nil, about.Sent; to == nil {
			return
		}
	case op.Effect != Written:
		return
	}
	changes, err := diff.Packed(from, to, bounds)
	switch {
	case err != nil:
	case from == nil:
		op.Changes = slices.DeleteFunc(changes, func(c diff.Change) bool { return naming[c.Path] })
	case len(changes) > 0:
		op.Effect, op.Changes = Changed, changes
	default:
		op.Effect = Unchanged
	}
}

// naming are the fields that say no more of a new object than its name does.
var naming = map[string]bool{"apiVersion": true, "kind": true, "metadata.name": true, "metadata.namespace": true}
