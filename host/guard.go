package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// interrupt is the context that wazero watches while a guest runs. Contexts of
// the standard library would be made and discarded for each call; an instance
// that was interrupted once is never used again, so one will do.
type interrupt struct {
	in    *instance
	done  chan struct{}
	cause atomic.Int32 // notInterrupted, then at most once another
	// operation ends the operation that runs; nil where none does.
	operation atomic.Pointer[context.CancelFunc]
}

const (
	notInterrupted = int32(iota)
	byDeadline
	byCaller
	byReplaced // the revision's time to drain is over
)

func (i *interrupt) fire(cause int32) {
	if i.cause.CompareAndSwap(notInterrupted, cause) {
		close(i.done)
		if cancel := i.operation.Load(); cancel != nil {
			(*cancel)()
		}
		if r := i.in.remote; r != nil {
			r.stop()
		}
	}
}

// Deadline implements context.Context. The deadline is the timer's business.
func (i *interrupt) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (i *interrupt) Done() <-chan struct{} { return i.done }

// Err implements context.Context.
func (i *interrupt) Err() error {
	switch i.cause.Load() {
	case byDeadline:
		return context.DeadlineExceeded
	case byCaller, byReplaced:
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (i *interrupt) Value(key any) any {
	if key == (instanceKey{}) {
		return i.in
	}
	return nil
}

// guarded runs f, which runs the guest, until it ends, the timeout is over or
// ctx ends. Any error means that the instance must be closed: a guest that was
// stopped in the middle lies in ruins even where later calls seem to work.
func (in *instance) guarded(ctx context.Context, e entry, f func() error) error {
	in.callBegins(ctx)
	if ctx.Err() != nil {
		in.callEnds(ctx)
		return fmt.Errorf("guest[%s]: %w", e.name, context.Cause(ctx))
	}
	wait := e.limit
	now := time.Now()
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, d.Sub(now))
	}
	in.gen.cfg.Watchdog.begin(in, now, e.limit)
	err := in.bounded(ctx, wait, now, f)
	took := time.Since(now)
	in.gen.cfg.Watchdog.end(in)
	if in.callEnds(ctx); ctx.Err() != nil {
		in.interrupt.fire(byCaller)
	}
	err = in.verdict(ctx, e, err)
	in.output.flush()
	in.drop()
	in.sources = in.run.sources
	in.spend(abi.RunFrom(ctx), took)
	in.run = run{}
	if in.gen.cfg.OnCall != nil {
		in.gen.cfg.OnCall(e.name, took, err)
	}
	return err
}

// bounded runs f, which runs the guest, until it ends, its time is over or the
// instance is interrupted.
func (in *instance) bounded(ctx context.Context, wait time.Duration, now time.Time, f func() error) error {
	in.run.parent, in.run.startedAt, in.run.limit, in.run.deadline = ctx, now, wait, now.Add(wait)
	in.run.calls, in.run.events, in.run.waited, in.run.sources = 0, 0, 0, 0
	in.run.computing = computing{}
	in.linear.refused = nil
	in.output.reset()
	in.timer.Reset(wait)
	in.fuelBudget.begin(in.gen.limits.Fuel, now)
	err := errInterrupted
	mayStart := in.pay()
	in.run.since = in.run.idle
	if mayStart {
		err = f()
	}
	in.host.name.Store(nil)
	in.settle()
	// A call that passed its deadline in a host function returns without an
	// error, so the deadline counts even without an error.
	if !in.timer.Stop() {
		in.interrupt.fire(byDeadline)
	}
	return err
}

// verdict says what the end of a call means.
func (in *instance) verdict(ctx context.Context, e entry, err error) error {
	cause := in.interrupt.cause.Load()
	if cause == byCaller && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("guest[%s]: %w", e.name, context.Cause(ctx))
	}
	if cause == byReplaced {
		return fmt.Errorf("guest[%s]: %w", e.name, errReplaced(in.gen.number))
	}
	if cause != notInterrupted {
		return in.callError(abi.FailureTimeout, e.name, traced(in.timeoutError(e), err))
	}
	if err == nil {
		return nil
	}
	kind := abi.FailureTrap
	if _, ok := errors.AsType[*outputError](err); ok {
		kind = abi.FailureOutput
	} else if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		if err = traced(limit, err); limit.Limit == abi.LimitFuel {
			kind = abi.FailureTimeout
		}
	}
	if in.linear.refused != nil {
		kind = abi.FailureMemory
		err = fmt.Errorf("%w: %w", in.linear.refused, exitCode(err))
	}
	return in.callError(kind, e.name, exitCode(err))
}

// timeoutError is the error of a call that ran out of time.
func (in *instance) timeoutError(e entry) error {
	err := in.gen.limitError(abi.LimitTimeout, "exceeded its time limit", context.DeadlineExceeded)
	err.Value, err.Waited = e.limit.String(), in.run.waited > e.limit/2
	return err
}

func (in *instance) callError(kind abi.FailureKind, fn string, err error) error {
	secrets := in.gen.cfg.Secrets
	rest, panicked, err := explained(kind, err, in.output.excerpt())
	if panicked {
		in.output.tell()
	}
	return &abi.CallError{Kind: kind, Func: fn, Err: shortError(secrets.Error(err)), Output: secrets.Text(rest)}
}
