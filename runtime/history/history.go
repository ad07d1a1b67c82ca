// SPDX-License-Identifier: Apache-2.0

// Package history is the flight recorder of a controller: the last runs of each object,
// with their reasons, reads, writes and results, in bounded memory. It makes no decisions
// and owns no goroutine.
//
//	r := history.New(1 << 20)
//	r.Begin(&history.Running{ID: id, Key: key, Since: now}) // a guest is called
//	r.Did(id, op, states)                                   // it requested an operation
//	r.End(key, run)                                         // the run has ended
//	runs := r.Runs(key)
//
// Objects are passed in the packed form of the cache. Only the last state of each object is
// stored, as long as there is room. It is compared with the next state when that arrives,
// which takes some microseconds. The caller must hide values that must not be shown.
package history

import (
	"bytes"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

const (
	// MaxRuns is the number of runs that are stored for each object.
	MaxRuns = 8
	// maxHidden is the maximum number of objects with counted hidden events.
	maxHidden = 1 << 10
)

// Memory of records without their strings.
const (
	runSize       = int(unsafe.Sizeof(Run{}))
	operationSize = int(unsafe.Sizeof(Operation{}))
	changeSize    = int(unsafe.Sizeof(diff.Change{}))
	reasonSize    = int(unsafe.Sizeof(abi.Reason{}))
	objectSize    = int(unsafe.Sizeof(entry[abi.Key, object]{})) + 150 // its entries in the map and the list
	stateSize     = 250
)

// ident identifies an object; resource is empty for the reconciled kind.
type ident struct {
	resource string
	key      abi.Key
}

func (id *ident) size() int { return len(id.resource) + len(id.key.Namespace) + len(id.key.Name) }

// Recorder records the history of one controller. It is safe for concurrent use.
type Recorder struct {
	// Shown returns the state of a related object without the values that must not be
	// shown, or nil. It is set before the first use; if it is nil, all values are shown.
	Shown func(resource string, packed []byte) []byte

	limit int // bytes of runs

	mu      sync.Mutex
	objects *lru[abi.Key, object]       // guarded by mu
	states  *lru[ident, []byte]         // the last known states, packed; guarded by mu
	related *lru[ident, []relatedEvent] // guarded by mu
	denials *lru[abi.Key, []Denial]     // the last one last; guarded by mu
	running map[string]*Running         // by reconcile id; guarded by mu
	hidden  map[abi.Key]Hidden          // guarded by mu
	total   meter                       // guarded by mu
	cost    Cost                        // of all runs; guarded by mu
	failed  *Run                        // the last failed run, without its Deeds; guarded by mu
	culprit abi.Key                     // the object of failed; guarded by mu
}

// object is the history of one object.
type object struct {
	runs   []Run
	oldest int // index in runs; later runs follow it and wrap around
	size   int // bytes of runs
	load   meter
}

// New returns a Recorder that uses about maxBytes of memory: half of it for runs, a quarter for
// the states that later ones are compared with, and an eighth each for the events of related objects
// and for denials.
// With 0 it records only the current runs and the last failure.
func New(maxBytes int) *Recorder {
	return &Recorder{
		limit: maxBytes / 2, objects: newLRU[abi.Key](maxBytes/2, (*object).clear),
		states: newLRU[ident](maxBytes/4, reset[[]byte]), related: newLRU[ident](maxBytes/8, reset[[]relatedEvent]),
		denials: newLRU[abi.Key](maxBytes/8, reset[[]Denial]),
		running: map[string]*Running{}, hidden: map[abi.Key]Hidden{},
	}
}

// Begin records a run whose guest is about to be called. The Recorder owns run from now on.
func (r *Recorder) Begin(run *Running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[run.ID] = run
}

// Did records an operation of a run that has begun; if the run is unknown, it is ignored.
// The effect may be Written for a write whose exact effect the answer does not show; Did
// determines it. about has the states of the object. Did returns it with the replaced
// state, which is the newest one that is known.
func (r *Recorder) Did(id string, op Operation, about States) States {
	target := ident{op.Resource, op.Object.Key}
	r.mu.Lock()
	run := r.running[id]
	var known []byte
	if last := r.states.get(target); last != nil {
		known = *last
	}
	r.mu.Unlock()
	if known != nil {
		about.improve(known)
	}
	if run == nil {
		return about
	}
	op.Settle(about, diff.Bounds{})
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case op.DryRun:
	case op.Effect == Deleted:
		r.states.forget(target)
	case about.After != nil:
		r.seen(target, about.After)
	}
	if len(run.Operations) < MaxOperations {
		run.Operations = append(run.Operations, op)
	} else {
		run.more++
	}
	return about
}

// Returned records that the guest of a run has returned, for a caller that measures the
// call.
func (r *Recorder) Returned(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.running[id]; run != nil {
		run.guestTook = at.Sub(run.Since)
	}
}

// End records a run that has ended. It completes run from the recorded data.
func (r *Recorder) End(key abi.Key, run *Run) {
	self := ident{key: key}
	r.mu.Lock()
	defer r.mu.Unlock()
	var seen []byte
	if started := r.running[run.ID]; started != nil && run.ID != "" {
		run.Operations, run.MoreOperations, seen = started.Operations, started.more, started.Object
		run.Guest = Call{started.Since, started.guestTook}
		delete(r.running, run.ID)
	}
	if seen != nil {
		before := r.states.get(self)
		switch {
		case before == nil:
			run.First = true
		case !bytes.Equal(*before, seen):
			packed := *before
			r.mu.Unlock()                                             // no other run has this object now
			run.Changes, _ = diff.Packed(packed, seen, diff.Bounds{}) // if they cannot be compared, no change is shown
			r.mu.Lock()
		}
		r.seen(self, seen)
	}
	if names(&run.Reasons, abi.ReasonRelated) {
		since, until := r.lastStarted(key), run.Guest.Started
		if until.IsZero() {
			until = run.Started
		}
		r.mu.Unlock() // comparing takes some time
		run.Related = r.relatedOf(&run.Reasons, since, until)
		r.mu.Lock()
	}
	r.store(key, run)
}

// lastStarted returns the time at which the last recorded run of an object called its guest
// or, if it called none, began. The caller holds mu.
func (r *Recorder) lastStarted(key abi.Key) time.Time {
	o := r.objects.get(key)
	if o == nil {
		return time.Time{}
	}
	last := o.newest()
	if last.Guest.Started.IsZero() {
		return last.Started
	}
	return last.Guest.Started
}

// names reports whether any of the reasons has the type.
func names(reasons *queue.Reasons, t abi.ReasonType) bool {
	return reasons.First.Type == t || slices.ContainsFunc(reasons.More, func(r abi.Reason) bool { return r.Type == t })
}

// store adds a run to the history of its object. The caller holds mu.
func (r *Recorder) store(key abi.Key, run *Run) {
	ended := run.Started.Add(time.Duration(run.Took))
	r.total.add(ended, run)
	r.cost.add(&run.Cost)
	if len(r.hidden) > 0 {
		delete(r.hidden, key)
	}
	if run.Result == ResultFailed {
		last := *run
		last.Deeds = Deeds{}
		r.failed, r.culprit = &last, key
	}
	if r.limit <= 0 {
		return
	}
	o := r.objects.use(key)
	o.value.load.add(ended, run)
	o.value.add(run)
	r.objects.resize(o, objectSize+len(key.Namespace)+len(key.Name)+o.value.size)
}

// seen stores the last known state of an object. The caller holds mu.
func (r *Recorder) seen(id ident, packed []byte) {
	s := r.states.use(id)
	s.value = packed
	r.states.resize(s, stateSize+len(packed)+id.size())
}

// add stores a run in place of the oldest one if there are MaxRuns. A skipped run replaces
// a skipped run directly before it.
func (o *object) add(run *Run) {
	o.size += run.bytes()
	if last := o.newest(); run.NoChange && last != nil && last.NoChange {
		o.size -= last.bytes()
		*last = *run
		return
	}
	if len(o.runs) < MaxRuns {
		o.runs = append(o.runs, *run)
		return
	}
	o.size -= o.runs[o.oldest].bytes()
	o.runs[o.oldest] = *run
	o.oldest = (o.oldest + 1) % MaxRuns
}

// clear removes all runs, but retains their memory.
func (o *object) clear() {
	clear(o.runs)
	*o = object{runs: o.runs[:0]}
}

func reset[V any](v *V) {
	var none V
	*v = none
}

// newest returns the last run, or nil if there is none.
func (o *object) newest() *Run {
	if len(o.runs) == 0 {
		return nil
	}
	return &o.runs[(o.oldest+len(o.runs)-1)%len(o.runs)]
}

// last returns the runs, the last one first.
func (o *object) last() []Run {
	runs := make([]Run, 0, len(o.runs))
	for i := range o.runs {
		runs = append(runs, o.runs[(o.oldest+len(o.runs)-1-i)%len(o.runs)])
	}
	return runs
}

// Hide records an event of an object that the predicates have filtered out, and the names
// of the predicates that saw no change.
func (r *Recorder) Hide(key abi.Key, now time.Time, unchanged string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, known := r.hidden[key]
	if !known && len(r.hidden) >= maxHidden {
		for other := range r.hidden {
			delete(r.hidden, other)
			break
		}
	}
	r.hidden[key] = Hidden{Count: h.Count + 1, Last: now, Unchanged: unchanged}
}
