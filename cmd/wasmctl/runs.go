package main

import (
	"context"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
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
}

func newRuns(m *host.Module) *runs {
	return &runs{module: m, apis: map[uint64]*kubeapi.API{}, byKey: map[abi.Key]uint64{}}
}

// Acquire implements applier.Module.
func (r *runs) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := r.module.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	guest := &runGuest{Guest: g, runs: r}
	return guest, func() {
		r.end(guest)
		release()
	}, nil
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
	defer r.mu.Unlock()
	delete(r.byKey, g.key)
}

// runGuest is a guest whose run is known. One goroutine uses it.
type runGuest struct {
	abi.Guest
	runs  *runs
	key   abi.Key
	begun bool
}

// Reconcile implements abi.Guest.
func (g *runGuest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	g.begin(req.Key)
	return g.Guest.Reconcile(ctx, req)
}

// Finalize implements abi.Guest.
func (g *runGuest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	g.begin(req.Key)
	return g.Guest.Finalize(ctx, req)
}

func (g *runGuest) begin(key abi.Key) {
	g.key, g.begun = key, true
	r, generation := g.runs, g.Generation()
	r.mu.Lock()
	r.byKey[key] = generation
	r.mu.Unlock()
	if r.onRun != nil {
		r.onRun(generation, key)
	}
}
