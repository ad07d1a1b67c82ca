// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// Instance is one instance of a revision. One goroutine uses it at a time, the one that
// runs the guest.
type Instance struct {
	Core

	Desk *operation.Desk
	// Scratch is the head of a request.
	Scratch []byte
	// IdleSince is when the instance became idle, in nanoseconds of Unix time; guarded by
	// the owner of idle instances.
	IdleSince int64
	// Imaged reports that the instance was made from an image.
	Imaged bool
	// Sources are the sources of values that the last call has asked.
	Sources abi.Source
	// Entered counts the entry calls.
	Entered int64

	overdue atomic.Int64 // when the Watchdog reports the call; 0 if none runs
	caller  *caller      // nil if there is none
	closed  bool
}

// OutputError is an error in the output of a guest.
type OutputError struct{ Err error }

// Error implements error.
func (e *OutputError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *OutputError) Unwrap() error { return e.Err }

// Outputf returns an OutputError.
func Outputf(format string, args ...any) error { return &OutputError{fmt.Errorf(format, args...)} }

// Open makes an instance, and runs the start code of its guest within the limits of a call.
func Open(ctx context.Context, spec *Spec, guest func(c *Core) (Guest, *operation.Desk)) (*Instance, error) {
	in, err := prepare(ctx, spec, guest)
	if err != nil {
		return nil, err
	}
	if err := in.guarded(ctx, spec.Entry(abi.ExportInitialize), in.guest.Start); err != nil {
		in.Close(ctx)
		return nil, err
	}
	return in, nil
}

// prepare makes an instance with everything that it needs before any of its code runs.
func prepare(ctx context.Context, spec *Spec, guest func(c *Core) (Guest, *operation.Desk)) (*Instance, error) {
	in := &Instance{}
	g, desk := guest(&in.Core)
	in.Desk = desk
	in.Init(spec, g)
	err := g.Open(ctx)
	if err == nil {
		spec.Watchdog.Add(in)
		err = spec.All.add(in)
	}
	if err != nil {
		in.Close(ctx)
		return nil, err
	}
	return in, nil
}

// Configure gives an instance new settings, and asks the guest if it has configure. After an
// error, a refusal included, the instance must be closed.
func (in *Instance) Configure(ctx context.Context, s *operation.Settings) error {
	in.Desk.Settings = s
	if !in.Spec.Hook(abi.ExportConfigure) {
		return nil
	}
	var refusal *abi.ResultError
	err := in.Enter(ctx, in.Spec.Entry(abi.ExportConfigure), Message{First: s.Message}, func(v uint64) error {
		b, err := in.Result(v)
		if err != nil {
			return err
		}
		var unknown []string
		if refusal, unknown, err = abi.DecodeConfigureResult(b); err != nil {
			return &OutputError{err}
		}
		in.Spec.CountUnknown(abi.ExportConfigure, unknown)
		return nil
	})
	if err == nil && refusal != nil {
		in.Spec.HideInError(refusal)
		err = fmt.Errorf("guest[%s]: %w: %w", abi.ExportConfigure, operation.ErrRefused, refusal)
	}
	return err
}

// Describe calls the guest's describe.
func (in *Instance) Describe(ctx context.Context) (man *abi.Manifest, unknown []string, err error) {
	e := in.Spec.Entry(abi.ExportDescribe)
	err = in.guarded(ctx, e, func() error {
		v, err := in.guest.Call(e, Message{})
		if err != nil {
			return err
		}
		b, err := in.Result(v)
		if err != nil {
			return err
		}
		if man, unknown, err = abi.DecodeManifest(b); err != nil {
			return &OutputError{err}
		}
		return nil
	})
	return man, unknown, err
}

// Enter calls an entry within its bounds and reads its result. An error closes the instance,
// unless the message is too large, which never reaches the guest.
func (in *Instance) Enter(ctx context.Context, e Entry, m Message, read func(v uint64) error) error {
	if n := m.Size(); n > abi.MaxBytes {
		return fmt.Errorf("guest[%s]: request of %d bytes: %w", e.Name, n, abi.ErrTooLarge)
	}
	in.Spec.Secrets.Learn(m.First)
	in.Spec.Secrets.Learn(m.Second)
	for _, object := range []*[]byte{&m.First, &m.Second} {
		readable, err := in.Spec.Readable(*object)
		if err != nil {
			return fmt.Errorf("guest[%s]: object of the request: %w", e.Name, err)
		}
		*object = readable
	}
	in.Entered++
	err := in.guarded(ctx, e, func() error {
		v, err := in.guest.Call(e, m)
		if err != nil {
			return err
		}
		return read(v)
	})
	if err != nil {
		in.Spec.Share.Recycled.Add(recycledBy(err))
		in.Close(ctx)
	}
	return err
}

// recycledBy returns the reason why an instance did not survive a call.
func recycledBy(err error) string {
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		return string(call.Kind)
	}
	return "interrupted"
}

// Result returns the block that an entry returned. It holds until the next call.
func (in *Instance) Result(v uint64) ([]byte, error) { return in.guest.Result(v) }

// Size returns the linear memory, in bytes.
func (in *Instance) Size() int64 { return in.guest.Size() }

// Alive reports whether the instance can be called.
func (in *Instance) Alive() bool { return in.guest.Alive() && !in.interrupted() }

// interrupted reports whether a call was interrupted. The instance is then of no more use.
func (in *Instance) interrupted() bool { return in.interrupt.Err() != nil }

// Closed reports whether the instance was closed.
func (in *Instance) Closed() bool { return in.closed }

// Guest returns the guest of the instance.
func (in *Instance) Guest() Guest { return in.guest }

// Close returns everything that the instance has. It must not be used afterwards; more
// calls do nothing.
func (in *Instance) Close(ctx context.Context) {
	if in.closed {
		return
	}
	in.closed = true
	in.Stop()
	in.leaveCaller()
	in.guest.Close(ctx)
	_ = in.Desk.Resize(0) // gives memory back, which cannot fail
	in.Spec.All.remove(in)
	in.Spec.Watchdog.Remove(in)
}

// minCalls is the number of calls before an instance may be replaced because of its memory:
// a module that always needs that much is not started again for each run.
const minCalls = 16

// Worn returns the limit because of which the instance must be replaced, or "". The memory
// of WebAssembly never shrinks: memory for one large object stays, and leaks grow.
func (in *Instance) Worn() abi.LimitName {
	switch {
	case in.Entered >= share.InstanceCalls:
		return abi.LimitInstanceCalls
	case in.Entered >= minCalls && in.Size() > in.Spec.Limits.HighWater():
		return abi.LimitHighWater
	}
	return ""
}

// ExitCode replaces wazero's text for proc_exit.
func ExitCode(err error) error {
	if exit, ok := errors.AsType[*vm.ExitError](err); ok {
		return fmt.Errorf("exited with code %d", exit.ExitCode())
	}
	return err
}

// timeoutError is the error of a call that had this time.
func (in *Instance) timeoutError(had time.Duration) error {
	err := in.Spec.LimitError(abi.LimitTimeout, "exceeded its time limit", context.DeadlineExceeded)
	err.Value, err.Waited = had.Round(time.Millisecond).String(), in.Run.Waited > had/2
	return err
}

// guarded runs f, which runs the guest, until it ends, the timeout is over or ctx ends.
// After any error the instance must be closed: the state of a guest that was stopped is
// inconsistent even if later calls seem to work.
func (in *Instance) guarded(ctx context.Context, e Entry, f func() error) error {
	in.callBegins(ctx)
	if ctx.Err() != nil {
		in.callEnds(ctx)
		return fmt.Errorf("guest[%s]: %w", e.Name, context.Cause(ctx))
	}
	wait := e.Limit
	now := time.Now()
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, d.Sub(now))
	}
	in.overdue.Store(in.Spec.Watchdog.Due(now, e.Limit))
	in.Desk.Output.Begin()
	err := in.Bounded(ctx, wait, now, f)
	took := time.Since(now)
	in.overdue.Store(0)
	if in.callEnds(ctx); ctx.Err() != nil {
		in.fire(byCaller)
	}
	err = in.verdict(ctx, e, wait, err)
	in.Desk.Output.End()
	in.Sources = in.Run.Sources
	in.spend(abi.RunFrom(ctx), took)
	in.Run = operation.Run{}
	if in.Spec.Observer.OnCall != nil {
		in.Spec.Observer.OnCall(e.Name, took, err)
	}
	return err
}

// verdict returns the meaning of the end of a call, which had this time.
func (in *Instance) verdict(ctx context.Context, e Entry, had time.Duration, err error) error {
	cause := in.interrupt.cause.Load()
	if cause == byCaller && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("guest[%s]: %w", e.Name, context.Cause(ctx))
	}
	if cause == byReplaced {
		return fmt.Errorf("guest[%s]: %w", e.Name, ErrReplaced(in.Spec.Number))
	}
	if cause == byBudget {
		in.Spec.Share.Hits.Add(abi.LimitMemoryBudget)
		return in.Desk.CallError(abi.FailureMemory, e.Name, in.Spec.Memory.Reclaimed())
	}
	if cause != notInterrupted {
		return in.Desk.CallError(abi.FailureTimeout, e.Name, traced(in.timeoutError(had), err))
	}
	if err == nil {
		return nil
	}
	kind := abi.FailureTrap
	if _, ok := errors.AsType[*OutputError](err); ok {
		kind = abi.FailureOutput
	} else if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		if err = traced(limit, err); limit.Limit == abi.LimitFuel {
			kind = abi.FailureTimeout
		}
	}
	if refused := in.guest.Refused(); refused != nil {
		kind = abi.FailureMemory
		err = fmt.Errorf("%w: %w", refused, ExitCode(err))
	}
	return in.Desk.CallError(kind, e.Name, ExitCode(err))
}
