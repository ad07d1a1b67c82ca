package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/canary"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// runs hands out the module's guests and knows which generation runs which
// object, so that what a run declares is done under the policy of its own
// generation. It implements applier.Module.
type runs struct {
	module *host.Module

	mu    sync.Mutex
	apis  map[uint64]*kubeapi.API // by generation; guarded by mu
	byKey map[abi.Key]uint64      // the generation that runs an object; guarded by mu
	onRun func(generation uint64, key abi.Key)
	// canary runs the objects of its side; nil without one. Guarded by mu, its sides
	// too.
	canary *tried
	// shadow compares the runs of the live generation; nil without one. recorded has
	// those under way; guarded by mu.
	shadow   atomic.Pointer[shadowing]
	recorded map[abi.Key]*recording
	// stored returns an object of the cache, or nil; set before the first run.
	stored func(abi.Key) *reflector.Object
	// onCall is told of each call of reconcile or finalize before it is made.
	onCall func(generation uint64, req *abi.Request)
	// onReturn is told of each such call that is over; nil: nobody.
	onReturn func(reconcileID string)
}

func newRuns(m *host.Module) *runs {
	return &runs{module: m, apis: map[uint64]*kubeapi.API{}, byKey: map[abi.Key]uint64{}, recorded: map[abi.Key]*recording{}}
}

// Acquire implements applier.Module. The guest is the canary's where the object
// of the run is on its side.
func (r *runs) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	acquire := r.module.Acquire
	if c := r.candidateFor(ctx); c != nil {
		acquire = c.Acquire
	}
	g, release, err := acquire(ctx)
	if errors.Is(err, host.ErrClosed) { // the canary has ended meanwhile
		g, release, err = r.module.Acquire(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	guest := &runGuest{Guest: g, runs: r}
	return guest, func() {
		r.end(guest)
		release()
	}, nil
}

// candidateFor returns the canary where it runs the object of the run that ctx
// carries, else nil.
func (r *runs) candidateFor(ctx context.Context) *host.Candidate {
	run := abi.RunFrom(ctx)
	if run == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.canary == nil {
		return nil
	}
	o := canary.Object{Key: run.Key}
	if stored := r.stored(run.Key); stored != nil && run.Object != nil {
		o = objectOf(stored)
	}
	if !r.canary.sides.Canary(&o) {
		return nil
	}
	return r.canary.candidate
}

// generationOf returns the generation that runs an object now.
func (r *runs) generationOf(key abi.Key) uint64 {
	run := &abi.Run{Key: key}
	if r.stored != nil {
		if stored := r.stored(key); stored != nil {
			run.Object = stored.Msgpack()
		}
	}
	if c := r.candidateFor(abi.WithRun(context.Background(), run)); c != nil {
		return c.Number()
	}
	return r.module.Generation()
}

func objectOf(o *reflector.Object) canary.Object {
	return canary.Object{Key: o.Ref(), UID: o.UID(), Labels: o.Labels()}
}

// try gives the objects of its side to a canary.
func (r *runs) try(k *tried) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canary = k
}

// untry gives no more objects to the canary, and returns which were its.
func (r *runs) untry() (mine func(*reflector.Object) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.canary
	r.canary = nil
	return func(stored *reflector.Object) bool { // nobody else has the sides any more
		o := objectOf(stored)
		return k.sides.Canary(&o)
	}
}

// onCanary reports whether an object is on the side of the canary.
func (r *runs) onCanary(stored *reflector.Object) bool {
	o := objectOf(stored)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.canary != nil && r.canary.sides.Canary(&o)
}

// forget drops what is known of an object that is gone.
func (r *runs) forget(key abi.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.canary != nil {
		r.canary.sides.Forget(key)
	}
}

// use says under which API the runs of a generation declare, and forgets those
// that have ended.
func (r *runs) use(generation uint64, api *kubeapi.API) {
	open := map[uint64]bool{generation: true}
	for _, g := range r.module.Generations() {
		open[g.Number] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for number := range r.apis {
		if !open[number] {
			delete(r.apis, number)
		}
	}
	r.apis[generation] = api
}

// apiOf returns the API of the run that ctx carries, or first: the first
// generation's.
func (r *runs) apiOf(ctx context.Context, first *kubeapi.API) *kubeapi.API {
	run := abi.RunFrom(ctx)
	if run == nil {
		return first
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if api := r.apis[r.byKey[run.Key]]; api != nil {
		return api
	}
	return first
}

func (r *runs) end(g *runGuest) {
	if !g.begun {
		return
	}
	r.mu.Lock()
	delete(r.byKey, g.key)
	delete(r.recorded, g.key)
	r.mu.Unlock()
	if x := r.shadow.Load(); x != nil && g.rec != nil && !g.rec.interrupted() {
		x.offer(g.rec)
	}
}

// runGuest is a guest whose run is known. One goroutine uses it.
type runGuest struct {
	abi.Guest
	runs  *runs
	id    string // of the run
	key   abi.Key
	begun bool
	rec   *recording // nil unless the run is to be compared
}

// Reconcile implements abi.Guest.
func (g *runGuest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	g.begin(req, false)
	res, err := g.Guest.Reconcile(ctx, req)
	g.ended(res, err)
	return res, err
}

// Finalize implements abi.Guest.
func (g *runGuest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	g.begin(req, true)
	res, err := g.Guest.Finalize(ctx, req)
	g.ended(res, err)
	return res, err
}

// ErrorPolicy implements abi.Guest.
func (g *runGuest) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	res, err := g.Guest.ErrorPolicy(ctx, f)
	if g.rec != nil && err == nil {
		g.rec.policy = &res
	}
	return res, err
}

func (g *runGuest) ended(res abi.Result, err error) {
	if g.runs.onReturn != nil {
		g.runs.onReturn(g.id)
	}
	if g.rec != nil {
		g.rec.result, g.rec.err = res, err
	}
}

func (g *runGuest) begin(req *abi.Request, finalize bool) {
	g.key, g.id, g.begun = req.Key, req.ID, true
	r, generation := g.runs, g.Generation()
	if r.shadow.Load() != nil && generation == r.module.Generation() {
		g.rec = &recording{req: *req, finalize: finalize, began: time.Now()}
	}
	r.mu.Lock()
	r.byKey[req.Key] = generation
	if g.rec != nil {
		r.recorded[req.Key] = g.rec
	}
	r.mu.Unlock()
	if r.onRun != nil {
		r.onRun(generation, req.Key)
	}
	if r.onCall != nil {
		r.onCall(generation, req)
	}
}

// note notes an operation of a run that is to be compared. The goroutine of the
// run calls it.
func (r *runs) note(ctx context.Context, op abi.Op, req []byte, res abi.Response) {
	if r.shadow.Load() == nil {
		return
	}
	run := abi.RunFrom(ctx)
	if run == nil {
		return
	}
	r.mu.Lock()
	rec := r.recorded[run.Key]
	r.mu.Unlock()
	if rec != nil && len(rec.exchanges) < maxExchanges {
		rec.exchanges = append(rec.exchanges, newExchange(op, req, res))
	}
}
