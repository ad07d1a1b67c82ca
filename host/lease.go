// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
)

// lease is a guest that was acquired: one slot of a revision and, most of the time, an
// instance. It implements abi.Guest.
type lease struct {
	rev *revision
	// in is nil after a call that the instance did not survive.
	in       *instance.Instance
	slots    slots // to which its own is given back
	fuel     int64
	released atomic.Bool
}

var errReleased = errors.New("used after release")

// Revision implements abi.Guest.
func (l *lease) Revision() uint64 { return l.rev.spec.Number }

// Fuel implements abi.Guest.
func (l *lease) Fuel() int64 { return l.fuel }

// Reconcile implements abi.Guest.
func (l *lease) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return l.run(ctx, abi.ExportReconcile, req)
}

// Finalize implements abi.Guest.
func (l *lease) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return l.run(ctx, abi.ExportFinalize, req)
}

// run calls one of the two entries that take a request.
func (l *lease) run(ctx context.Context, fn string, req *abi.Request) (abi.Result, error) {
	if fn == abi.ExportFinalize && !l.rev.spec.Hook(fn) {
		return abi.Result{}, fmt.Errorf("guest[%s]: %w", fn, ErrNoHook)
	}
	in, err := l.instance(ctx, fn)
	if err != nil {
		return abi.Result{}, err
	}
	r := *req
	r.ConfigGen, r.DryRun, r.Caps = in.Desk.Settings.Gen, false, l.rev.caps
	r.Deadline = l.rev.deadline(ctx)
	in.Run.ID, in.Run.Key = r.ID, r.Key
	in.Scratch = abi.AppendRequestHead(in.Scratch[:0], &r)
	return l.call(ctx, fn, r.Object)
}

// ErrorPolicy implements abi.Guest.
func (l *lease) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	if !l.rev.spec.Hook(abi.ExportErrorPolicy) {
		return abi.Result{}, abi.ErrNoErrorPolicy
	}
	in, err := l.instance(ctx, abi.ExportErrorPolicy)
	if err != nil {
		return abi.Result{}, err
	}
	in.Run.ID, in.Run.Key = f.ID, f.Key
	in.Scratch = abi.AppendFailureHead(in.Scratch[:0], f)
	return l.call(ctx, abi.ExportErrorPolicy, f.Object)
}

// instance returns the lease's instance, or a fresh one if the last did not survive its call.
func (l *lease) instance(ctx context.Context, fn string) (*instance.Instance, error) {
	if l.released.Load() {
		return nil, fmt.Errorf("guest[%s]: %w", fn, errReleased)
	}
	if l.in == nil {
		in, err := l.rev.another(ctx, l.rev.settings.Load())
		if err != nil {
			return nil, err
		}
		l.in = in
	}
	return l.in, nil
}

// release gives the instance and the slot back. A second call does nothing.
func (l *lease) release() {
	if l.released.Swap(true) {
		return
	}
	l.rev.put(l.in, l.slots)
	l.in = nil
}

// deadline returns when a call that starts now is interrupted, on the guest's clock.
func (r *revision) deadline(ctx context.Context) time.Time {
	wait := r.spec.Limits.Timeout
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d))
	}
	return r.spec.Clock.Now().Add(wait)
}

// call calls an entry that returns a result, with the head in Scratch, followed by the
// object.
func (l *lease) call(ctx context.Context, name string, object []byte) (abi.Result, error) {
	in := l.in
	var res abi.Result
	var size int32 // of the result
	msg := instance.Message{Head: in.Scratch, Split: len(in.Scratch), First: object}
	err := in.Enter(ctx, l.rev.spec.Entry(name), msg, func(v uint64) error {
		b, err := in.Result(v)
		if err != nil {
			return err
		}
		size = int32(len(b)) //nolint:gosec // at most MaxBytes
		if res, err = abi.DecodeResult(b); err != nil {
			return &instance.OutputError{Err: err}
		}
		if name == abi.ExportErrorPolicy && res.Declared != nil {
			return instance.Outputf("result: error_policy declares objects: only reconcile and finalize can")
		}
		return nil
	})
	l.fuel += in.Spent
	if run := abi.RunFrom(ctx); run != nil {
		if in.Sources != 0 && run.Read != nil {
			run.Read(abi.Read{Source: in.Sources})
		}
		if run.Cost != nil {
			run.Cost.Result = max(run.Cost.Result, size)
		}
	}
	if in.Closed() {
		l.in = nil
	}
	if err != nil {
		return abi.Result{}, err
	}
	l.rev.spec.HideSecrets(&res)
	l.rev.spec.CountUnknown(name, res.Unknown)
	return res, nil
}
