// Package history is the flight recorder of a controller: the last runs of each
// object, with what led to them, what they read and wrote and what came of it,
// in a bounded part of the memory. It decides nothing and owns no goroutine.
//
//	r := history.New(history.DefaultBytes)
//	r.Begin(&history.Running{ID: id, Key: key, Since: now}) // a guest is called
//	r.Did(id, op, states)                                   // it asked for something
//	r.End(key, run)                                         // the run is over
//	runs := r.Runs(key)
//
// Objects are given as the cache packs them. Of each, only the last state is
// kept, and only as long as there is room; what differs from it is worked out
// when a newer one comes, at some microseconds. Values that must not be shown
// have to be hidden by the caller.
package history

import (
	"container/list"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

const (
	// DefaultBytes is how much memory a Recorder takes at most: half of it for
	// runs, a quarter for the states that later ones are compared with, and a
	// quarter for the events of related objects.
	DefaultBytes = 1 << 20
	// MaxRuns is how many runs of an object are kept.
	MaxRuns = 8
	// maxHidden is how many objects are known from which events were hidden.
	maxHidden = 1 << 10
)

// What things take of the memory beside their strings.
const (
	runSize    = int(unsafe.Sizeof(Run{}))
	opSize     = int(unsafe.Sizeof(Op{}))
	changeSize = int(unsafe.Sizeof(diff.Change{}))
	reasonSize = int(unsafe.Sizeof(abi.Reason{}))
	objectSize = int(unsafe.Sizeof(object{})) + 150 // its places in map and list
)

// Recorder keeps the history of one controller. It is safe for concurrent use.
type Recorder struct {
	// Shown returns the state of a related object without the values that must not
	// be shown, or nil; set before the first use. Without it all are shown.
	Shown func(resource string, packed []byte) []byte

	limit int // bytes of runs

	mu      sync.Mutex
	objects map[abi.Key]*list.Element // of *object; guarded by mu
	order   *list.List                // of *object, the one that ran last at the front; guarded by mu
	size    int                       // bytes of objects; guarded by mu
	states  states                    // guarded by mu
	related related                   // guarded by mu
	running map[string]*Running       // by reconcile id; guarded by mu
	hidden  map[abi.Key]Hidden        // guarded by mu
	total   meter                     // guarded by mu
	failed  *Run                      // the last that failed, and lost its key; guarded by mu
	culprit abi.Key                   // the object of failed; guarded by mu
}

// object is what is known of one object.
type object struct {
	key    abi.Key
	runs   []Run
	oldest int // in runs; the others follow, and then those before it
	size   int // bytes
	load   meter
}

// New returns a Recorder that takes about so many bytes. With none it keeps
// nothing but what runs now and the last failure.
func New(maxBytes int) *Recorder {
	return &Recorder{
		limit: maxBytes / 2, objects: map[abi.Key]*list.Element{}, order: list.New(), states: newStates(maxBytes / 4), related: newRelated(maxBytes / 4),
		running: map[string]*Running{}, hidden: map[abi.Key]Hidden{},
	}
}

// Begin is told of a run whose guest is about to be called. The Recorder has run
// from now on.
func (r *Recorder) Begin(run *Running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[run.ID] = run
}

// Did is told of an operation of a run that has begun; it keeps nothing of one
// that has not. Op.Effect may be Written for a write whose answer says no more,
// and is made more exact. states, where there are any, say what it was about;
// they come back with the state before, where that is known.
func (r *Recorder) Did(id string, op Op, about States) States {
	target := ident{op.Resource, op.Key}
	r.mu.Lock()
	run := r.running[id]
	if known := r.states.get(target); known != nil && about.Before == nil {
		about.Before = known.packed
	}
	r.mu.Unlock()
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
		r.states.put(target, about.After)
	}
	if len(run.Ops) < MaxOps {
		run.Ops = append(run.Ops, op)
	} else {
		run.Dropped++
	}
	return about
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

// Returned is told when the guest of a run has returned, by whoever cares how
// long it was called for.
func (r *Recorder) Returned(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.running[id]; run != nil {
		run.guestTook = at.Sub(run.Since)
	}
}

// End is told of a run that is over. It adds what it knows of it to run, and
// keeps that.
func (r *Recorder) End(key abi.Key, run *Run) {
	self := ident{key: key}
	r.mu.Lock()
	defer r.mu.Unlock()
	var seen []byte
	if begun := r.running[run.ID]; begun != nil && run.ID != "" {
		run.Ops, run.Dropped, seen = begun.Ops, begun.Dropped, begun.Object
		run.GuestStarted, run.GuestTook = begun.Since, begun.guestTook
		delete(r.running, run.ID)
	}
	if seen != nil {
		before := r.states.get(self)
		switch {
		case before == nil:
			run.First = true
		case !same(before.packed, seen):
			packed := before.packed
			r.mu.Unlock()                                             // nobody else has this object now
			run.Changes, _ = diff.Packed(packed, seen, diff.Bounds{}) // what cannot be compared is not shown
			r.mu.Lock()
		}
		r.states.put(self, seen)
	}
	if names(&run.Reasons, abi.ReasonRelated) {
		since, until := r.lastBegan(key), run.GuestStarted
		if until.IsZero() {
			until = run.Started
		}
		r.mu.Unlock() // to compare takes some time
		run.Related = r.relatedOf(&run.Reasons, since, until)
		r.mu.Lock()
	}
	r.keep(key, run)
}

// lastBegan returns when the guest of the last known run of an object was called,
// or, without a guest, when that run began. The caller holds mu.
func (r *Recorder) lastBegan(key abi.Key) time.Time {
	e := r.objects[key]
	if e == nil {
		return time.Time{}
	}
	o := e.Value.(*object)
	last := &o.runs[(o.oldest+len(o.runs)-1)%len(o.runs)]
	if last.GuestStarted.IsZero() {
		return last.Started
	}
	return last.GuestStarted
}

// names reports whether any of the reasons has a type.
func names(reasons *queue.Reasons, t abi.ReasonType) bool {
	return reasons.First.Type == t || slices.ContainsFunc(reasons.More, func(r abi.Reason) bool { return r.Type == t })
}

// same reports whether two slices are one: most runs see what the last one saw.
func same(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// keep adds a run to what is known of its object. The caller holds mu.
func (r *Recorder) keep(key abi.Key, run *Run) {
	ended := run.Started.Add(run.Took)
	r.total.add(ended, run)
	if len(r.hidden) > 0 {
		delete(r.hidden, key)
	}
	if run.Failed {
		last := *run
		last.Ops, last.Changes, last.Related = nil, nil, nil
		r.failed, r.culprit = &last, key
	}
	if r.limit <= 0 {
		return
	}
	e := r.objects[key]
	if e == nil {
		o := &object{key: key, size: objectSize + len(key.Namespace) + len(key.Name)}
		e = r.order.PushFront(o)
		r.objects[key] = e
		r.size += o.size
	} else {
		r.order.MoveToFront(e)
	}
	o := e.Value.(*object)
	o.load.add(ended, run)
	before := o.size
	o.add(run)
	r.size += o.size - before
	r.makeRoom()
}

// add keeps a run, in the place of the oldest if there are many.
func (o *object) add(run *Run) {
	o.size += run.cost()
	if len(o.runs) < MaxRuns {
		o.runs = append(o.runs, *run)
		return
	}
	o.size -= o.runs[o.oldest].cost()
	o.runs[o.oldest] = *run
	o.oldest = (o.oldest + 1) % MaxRuns
}

// last returns the runs, the last one first.
func (o *object) last() []Run {
	runs := make([]Run, 0, len(o.runs))
	for i := range o.runs {
		runs = append(runs, o.runs[(o.oldest+len(o.runs)-1-i)%len(o.runs)])
	}
	return runs
}

// makeRoom forgets the objects that have not run for longest. The caller holds
// mu.
func (r *Recorder) makeRoom() {
	for r.size > r.limit && r.order.Len() > 0 {
		e := r.order.Back()
		o := e.Value.(*object)
		r.size -= o.size
		r.order.Remove(e)
		delete(r.objects, o.key)
	}
}

// Hide is told of an event of the object that the predicates have hidden, and of
// the names of those that saw no change.
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

// Runs returns the runs of an object that are known, the last one first.
func (r *Recorder) Runs(key abi.Key) []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.objects[key]
	if e == nil {
		return nil
	}
	return e.Value.(*object).last()
}

// Hidden returns what was hidden from an object since it last ran.
func (r *Recorder) Hidden(key abi.Key) Hidden {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hidden[key]
}

// Running returns the runs whose guest has been called and that are not over,
// the one that began first at the front.
func (r *Recorder) Running() []Running {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Running, 0, len(r.running))
	for _, run := range r.running {
		copied := *run
		copied.Ops = slices.Clone(run.Ops)
		out = append(out, copied)
	}
	slices.SortFunc(out, func(a, b Running) int { return a.Since.Compare(b.Since) })
	return out
}

// LastFailure returns the last run that failed and its object, without what it
// did; false where none has.
func (r *Recorder) LastFailure() (abi.Key, Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return abi.Key{}, Run{}, false
	}
	return r.culprit, *r.failed, true
}

// Busy is an object and how busy it keeps the controller.
type Busy struct {
	Key  abi.Key
	Load Load
}

// Busiest returns the load of the controller, and the objects of which it is
// most of the time, at most n.
func (r *Recorder) Busiest(now time.Time, n int) (Load, []Busy) {
	r.mu.Lock()
	all := make([]Busy, 0, len(r.objects))
	for key, e := range r.objects {
		all = append(all, Busy{key, e.Value.(*object).load.read(now)})
	}
	total := r.total.read(now)
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Busy) int {
		switch {
		case a.Load.Busy > b.Load.Busy:
			return -1
		case a.Load.Busy < b.Load.Busy:
			return 1
		}
		return 0
	})
	return total, all[:min(n, len(all))]
}

// Bytes returns about how much memory is taken.
func (r *Recorder) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size + r.states.size + r.related.size
}
