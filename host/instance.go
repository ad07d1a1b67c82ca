package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmctl/wasmctl/abi"
)

// instance is one instance of a generation. One goroutine uses it at a time,
// the one that runs the guest; only interrupt belongs to others as well.
type instance struct {
	gen       *generation
	module    api.Module
	memory    api.Memory
	linear    linearMemory
	interrupt interrupt
	timer     *time.Timer // interrupts the call when its time is over
	cancel    func()      // interrupts the call when the caller's context ends

	// Functions are looked up once (a look-up costs microseconds), and called
	// with one stack (which costs no allocation).
	buffer, reconcile, finalize, errorPolicy api.Function
	stack                                    [2]uint64
	scratch                                  []byte // the head of a request

	run    run
	output output
}

// run is the state of one entry call.
type run struct {
	// parent is the caller's context: what operations and log lines are given.
	parent   context.Context //nolint:containedctx // it lives as long as the call
	deadline time.Time
	// entered says that the guest is in an entry call, so that it may use all
	// host functions.
	entered bool
	// id and key name the run in log lines.
	id  string
	key abi.Key
	// held is the answer that take copies from, where holding.
	held    []byte
	holding bool
	// calls counts operations.
	calls int64
}

// instanceKey is the context key under which host functions find their
// instance.
type instanceKey struct{}

// interrupt is the context that wazero watches while a guest runs. Contexts of
// the standard library would be made and thrown away for each call; an
// instance that was interrupted once is never used again, so one will do.
type interrupt struct {
	in    *instance
	done  chan struct{}
	cause atomic.Int32 // notInterrupted, then at most once another
}

const (
	notInterrupted = int32(iota)
	byDeadline
	byCaller
)

func (i *interrupt) fire(cause int32) {
	if i.cause.CompareAndSwap(notInterrupted, cause) {
		close(i.done)
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
	case byCaller:
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

// newInstance instantiates the module and runs its start code within the
// limits of a call.
func (g *generation) newInstance(ctx context.Context) (*instance, error) {
	in := &instance{gen: g}
	in.linear.limit = uint64(g.limits.Memory)
	in.interrupt = interrupt{in: in, done: make(chan struct{})}
	in.timer = time.AfterFunc(math.MaxInt64, func() { in.interrupt.fire(byDeadline) })
	in.cancel = func() { in.interrupt.fire(byCaller) }
	in.output.in = in
	err := in.guarded(ctx, abi.ExportInitialize, func() (err error) {
		in.module, err = g.runtime.InstantiateModule(experimental.WithMemoryAllocator(&in.interrupt, &in.linear), g.compiled, in.moduleConfig())
		if err == nil && in.module.IsClosed() { // proc_exit(0) is no error to wazero
			err = errors.New("exited with code 0")
		}
		return err
	})
	if err != nil {
		in.close(ctx)
		return nil, err
	}
	in.memory = in.module.Memory()
	in.buffer = in.module.ExportedFunction(abi.ExportBuffer)
	in.reconcile = in.module.ExportedFunction(abi.ExportReconcile)
	if g.hook(abi.ExportFinalize) {
		in.finalize = in.module.ExportedFunction(abi.ExportFinalize)
	}
	if g.hook(abi.ExportErrorPolicy) {
		in.errorPolicy = in.module.ExportedFunction(abi.ExportErrorPolicy)
	}
	return in, nil
}

// moduleConfig gives a guest its clocks, its randomness and two streams to the
// log, and nothing else: no files, environment or arguments.
func (in *instance) moduleConfig() wazero.ModuleConfig {
	cfg := in.gen.cfg
	walltime := func() (sec int64, nsec int32) {
		t := cfg.Now()
		return t.Unix(), int32(t.Nanosecond()) //nolint:gosec // less than 1e9
	}
	return wazero.NewModuleConfig().
		WithName(""). // anonymous: many instances of one module
		WithStartFunctions(abi.ExportInitialize).
		WithStdout(in.output.stdout()).WithStderr(in.output.stderr()).
		WithWalltime(walltime, 1).WithNanotime(cfg.Mono, 1).
		WithNanosleep(in.sleep).
		WithRandSource(cfg.Random)
}

// sleep is WASI's sleep; it ends with the call.
func (in *instance) sleep(ns int64) {
	if ns <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-in.interrupt.done:
	}
}

// guarded runs f, which runs the guest, until it ends, the timeout is over or
// ctx ends. Any error means that the instance must be closed: a guest that was
// stopped in the middle lies in ruins even where later calls seem to work.
func (in *instance) guarded(ctx context.Context, fn string, f func() error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("guest[%s]: %w", fn, context.Cause(ctx))
	}
	wait := in.gen.limits.Timeout
	now := time.Now()
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, d.Sub(now))
	}
	in.run.parent, in.run.deadline, in.run.calls = ctx, now.Add(wait), 0
	in.linear.refused = false
	in.output.reset()
	in.timer.Reset(wait)
	var stop func() bool
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, in.cancel)
	}
	err := f()
	// What sat out the deadline in a host function returns as if nothing had
	// happened, so the end of time counts even where there is no error.
	if !in.timer.Stop() {
		in.interrupt.fire(byDeadline)
	}
	if stop != nil && !stop() {
		in.interrupt.fire(byCaller)
	}
	err = in.verdict(ctx, fn, err)
	in.output.flush()
	in.run = run{}
	return err
}

// verdict says what the end of a call means.
func (in *instance) verdict(ctx context.Context, fn string, err error) error {
	cause := in.interrupt.cause.Load()
	if cause == byCaller && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("guest[%s]: %w", fn, context.Cause(ctx))
	}
	if cause != notInterrupted {
		return in.callError(abi.FailureTimeout, fn, fmt.Errorf("ran longer than it may (timeout %v): %w", in.gen.limits.Timeout, context.DeadlineExceeded))
	}
	if err == nil {
		return nil
	}
	kind := abi.FailureTrap
	if _, ok := errors.AsType[*outputError](err); ok {
		kind = abi.FailureOutput
	}
	if in.linear.refused {
		kind = abi.FailureMemory
		err = fmt.Errorf("needs more memory than the limit of %d bytes: %w", in.linear.limit, exitCode(err))
	}
	return in.callError(kind, fn, exitCode(err))
}

func (in *instance) callError(kind abi.FailureKind, fn string, err error) error {
	return &abi.CallError{Kind: kind, Func: fn, Err: err, Output: in.output.excerpt()}
}

// close returns what the instance holds. It must not be used afterwards.
func (in *instance) close(ctx context.Context) {
	in.timer.Stop()
	if in.module != nil {
		_ = in.module.Close(ctx) // there are no files whose closing could fail
	}
	in.linear.Free()
}
