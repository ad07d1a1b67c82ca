package cases

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// scripted gives out guests whose runs are the case's: with its attempt, and with
// its error in place of a run. What does not repeat itself, the id of a run and
// the time of a failure, is made so. It implements applier.Module.
type scripted struct {
	applier.Module

	c   *Case
	now func() time.Time
}

// Acquire implements applier.Module.
func (s scripted) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := s.Module.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &guest{g, s}, release, nil
}

// guest is a guest under a script.
type guest struct {
	abi.Guest

	s scripted
}

const runID = "case-1"

func (g *guest) request(req *abi.Request) *abi.Request {
	r := *req
	r.ID = runID
	r.Attempt += max(1, g.s.c.Attempt) - 1
	return &r
}

// scriptedError returns what a run fails with in place of being run, if anything.
func (g *guest) scriptedError() (res abi.Result, err error, fails bool) {
	e := g.s.c.Error
	if e == nil {
		return res, nil, false
	}
	result := &abi.ResultError{Class: abi.ErrorClass(e.Class), Reason: e.Reason, Message: e.Message}
	if e.Kind != "" && e.Kind != string(abi.FailureError) {
		return res, &abi.CallError{Kind: abi.FailureKind(e.Kind), Func: abi.ExportReconcile, Err: result}, true
	}
	res.Error = result
	return res, nil, true
}

// Reconcile implements abi.Guest.
func (g *guest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	if res, err, fails := g.scriptedError(); fails {
		return res, err
	}
	return g.Guest.Reconcile(ctx, g.request(req))
}

// Finalize implements abi.Guest.
func (g *guest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	if res, err, fails := g.scriptedError(); fails {
		return res, err
	}
	return g.Guest.Finalize(ctx, g.request(req))
}

// ErrorPolicy implements abi.Guest.
func (g *guest) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	failure := *f
	failure.ID, failure.FirstFailed = runID, g.s.now()
	failure.Attempt += max(1, g.s.c.Attempt) - 1
	return g.Guest.ErrorPolicy(ctx, &failure)
}
