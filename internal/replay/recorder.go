// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// Recorder records the runs of the live module while a shadow compares them. The zero value is ready to use. It is safe for concurrent use.
type Recorder struct {
	shadow atomic.Pointer[shadowing] // nil if there is no shadow
}

// Guest returns a guest that records its run if there is a shadow, and its release. live is the revision whose runs are compared.
func (r *Recorder) Guest(g abi.Guest, release func(), live uint64) (abi.Guest, func()) {
	x := r.shadow.Load()
	if x == nil || g.Revision() != live {
		return g, release
	}
	recorded := &recordedGuest{Guest: g}
	return recorded, func() {
		if rec := recorded.rec; rec != nil && !rec.interrupted() {
			x.offer(rec)
		}
		release()
	}
}

// API returns an API that records the operations of recorded runs, and reports to each run what it reads.
func (r *Recorder) API(api operation.API) operation.API { return recordingAPI{api, r} }

type recordingAPI struct {
	operation.API

	recorder *Recorder
}

// Call implements operation.API.
func (t recordingAPI) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	res := t.API.Call(ctx, op, req)
	if run := abi.RunFrom(ctx); run != nil && run.Read != nil {
		run.Read(abi.Read{Op: op, Request: req, Response: res})
	}
	if t.recorder.shadow.Load() == nil {
		return res
	}
	if rec, ok := ctx.Value(recordingKey{}).(*recording); ok && len(rec.exchanges) < maxExchanges {
		rec.exchanges = append(rec.exchanges, newExchange(op, req, res))
	}
	return res
}

// recordedGuest is a guest whose run will be compared. It belongs to one goroutine.
type recordedGuest struct {
	abi.Guest

	rec *recording // nil before the run
}

// Reconcile implements abi.Guest.
func (g *recordedGuest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	ctx = g.begin(ctx, req, false)
	res, err := g.Guest.Reconcile(ctx, req)
	g.rec.result, g.rec.err = res, err
	return res, err
}

// Finalize implements abi.Guest.
func (g *recordedGuest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	ctx = g.begin(ctx, req, true)
	res, err := g.Guest.Finalize(ctx, req)
	g.rec.result, g.rec.err = res, err
	return res, err
}

// ErrorPolicy implements abi.Guest.
func (g *recordedGuest) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	if g.rec == nil {
		return g.Guest.ErrorPolicy(ctx, f)
	}
	res, err := g.Guest.ErrorPolicy(context.WithValue(ctx, recordingKey{}, g.rec), f)
	if err == nil {
		g.rec.policy = &res
	}
	return res, err
}

// recordingKey is the key of a *recording in the context of its run.
type recordingKey struct{}

func (g *recordedGuest) begin(ctx context.Context, req *abi.Request, finalize bool) context.Context {
	g.rec = &recording{req: *req, finalize: finalize, startedAt: time.Now()}
	return context.WithValue(ctx, recordingKey{}, g.rec)
}
