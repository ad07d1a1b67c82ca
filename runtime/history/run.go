package history

import (
	"slices"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Run is one run of one object, as it is told once it is over.
type Run struct {
	// ID is the reconcile id; empty where no guest was called.
	ID string
	// Reasons are why it ran, Queued for how long it was due before it began at
	// Started, Took how long it was under way.
	Reasons queue.Reasons
	Queued  time.Duration
	Started time.Time
	Took    time.Duration
	// Revision is that of the module; 0 where no guest was called.
	Revision uint64
	// Attempt is 1 for a first run, and one more after each failed one.
	Attempt  int
	Finalize bool
	// Action says what happens next, DecidedBy who chose it.
	Action    abi.Action
	DecidedBy string
	// Delay is how long the object is held because it is in a hot loop.
	Delay time.Duration
	// Failed says that the run failed; Kind is then a kind of failure. Error is
	// why, or why no guest was called.
	Failed bool
	Kind   string
	Error  string
	// Skipped says that the run was skipped, as nothing had changed since the run
	// before. Of several in a row the last is kept.
	Skipped bool
	// Fuel is what the guest has used, in the unit of docs/metering.md.
	Fuel int64
	// Cost is what it has cost.
	Cost Cost
	// Stale says that the cache did not have the writes of the run before.
	Stale bool

	// GuestStarted is when the guest was called, GuestTook for how long, if
	// Recorder.Returned was told; else 0.
	GuestStarted time.Time
	GuestTook    time.Duration

	// First says that no state of the object from a run before was known; else
	// Changes are what has changed since. The Recorder sets both, and what follows.
	First   bool
	Changes []diff.Change
	// Related are what had changed, since the run before, in the related objects
	// that Reasons names, as far as it is known.
	Related []RelatedChange
	// Ops are the first MaxOps operations that the run asked for, Dropped counts
	// the others.
	Ops     []Op
	Dropped int
}

// MaxOps is how many operations of a run are kept.
const MaxOps = 32

// Op is one operation that a run asked for, once it was answered.
type Op struct {
	// Name is an abi.Op, Resource "deployments.apps".
	Name        string
	Resource    string
	Subresource string
	Key         abi.Key // without a name for lists
	DryRun      bool
	// Started and Took are zero where nothing was sent.
	Started time.Time
	Took    time.Duration
	// Effect is its result, Error why it failed.
	Effect Effect
	Error  string
	// Changes are what a write has changed.
	Changes []diff.Change
}

// Effect is the result of an operation.
type Effect string

// The effects.
const (
	Read      Effect = "read"
	Created   Effect = "created"
	Changed   Effect = "changed"
	Unchanged Effect = "unchanged"
	Written   Effect = "written" // what was there before is not known
	Deleted   Effect = "deleted"
	Denied    Effect = "denied" // by the policy
	Failed    Effect = "failed"
)

// Running is a run that is not over.
type Running struct {
	ID       string
	Key      abi.Key
	Revision uint64
	Since    time.Time
	Reason   abi.Reason
	// Object is the packed object as the run sees it; nil where it is gone. Its
	// values are shown.
	Object  []byte
	Ops     []Op
	Dropped int

	guestTook time.Duration
}

// Hidden is what the predicates of the watch have kept from an object.
type Hidden struct {
	// Count is how many events were hidden since the object last ran, Last when the
	// last of them was.
	Count uint64
	Last  time.Time
	// Unchanged names the predicates that saw no change in it: "generation".
	Unchanged string
}

// cost is about what a run takes of the memory, its strings and slices
// included.
func (r *Run) cost() int {
	n := runSize + len(r.ID) + len(r.Error) + reasonSize*len(r.Reasons.More) + changesCost(r.Changes)
	for i := range r.Related {
		c := &r.Related[i]
		n += int(unsafe.Sizeof(*c)) + len(c.Resource) + len(c.Key.Namespace) + len(c.Key.Name) + changesCost(c.Changes)
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		n += opSize + len(o.Resource) + len(o.Key.Namespace) + len(o.Key.Name) + len(o.Error) + changesCost(o.Changes)
	}
	return n
}

func changesCost(changes []diff.Change) int {
	n := 0
	for i := range changes {
		n += changeSize + len(changes[i].Path) + len(changes[i].Before) + len(changes[i].After)
	}
	return n
}

// States are those of the object of an operation, packed and with nothing in
// them that must not be shown. They must not change. Each may be nil.
type States struct {
	// Before is what it was; nil: what the Recorder knows of it.
	Before []byte
	// Sent is what the run asked for, After what the answer shows of the whole
	// object.
	Sent, After []byte
}

// Settle says what a write that is Written has changed, or a Created one has.
func (op *Op) Settle(about States, bounds diff.Bounds) {
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
