// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// scripted returns guests that follow the case's script: they report its attempt, and fail with its
// error instead of running. The ID of a run and the time of a failure are reproducible. It
// implements applier.Module.
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

// guest is a guest that follows a script.
type guest struct {
	abi.Guest

	s scripted
}

const runID = "case-1"

// run implements Reconcile and Finalize. It fails with the case's error, if there is one.
func (g *guest) run(ctx context.Context, req *abi.Request, call func(context.Context, *abi.Request) (abi.Result, error)) (abi.Result, error) {
	e := g.s.c.Error
	if e == nil {
		r := *req
		r.ID = runID
		r.Attempt += max(1, g.s.c.Attempt) - 1
		return call(ctx, &r)
	}
	result := &abi.ResultError{Class: abi.ErrorClass(e.Class), Reason: e.Reason, Message: e.Message}
	if e.Kind != "" && e.Kind != string(abi.FailureError) {
		return abi.Result{}, &abi.CallError{Kind: abi.FailureKind(e.Kind), Func: abi.ExportReconcile, Err: result}
	}
	return abi.Result{Error: result}, nil
}

// Reconcile implements abi.Guest.
func (g *guest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return g.run(ctx, req, g.Guest.Reconcile)
}

// Finalize implements abi.Guest.
func (g *guest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return g.run(ctx, req, g.Guest.Finalize)
}

// ErrorPolicy implements abi.Guest.
func (g *guest) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	failure := *f
	failure.ID, failure.FirstFailed = runID, g.s.now()
	failure.Attempt += max(1, g.s.c.Attempt) - 1
	return g.Guest.ErrorPolicy(ctx, &failure)
}
