package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// lease is a guest that was acquired: one slot of a revision and, most of
// the time, an instance. It implements abi.Guest.
type lease struct {
	gen *revision
	// in is nil after a call that the instance did not survive.
	in       *instance
	slots    slots // where its own is given back
	fuel     int64
	released atomic.Bool
}

var errReleased = errors.New("used after release")

// Revision implements abi.Guest.
func (l *lease) Revision() uint64 { return l.gen.number }

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
	if fn == abi.ExportFinalize && !l.gen.hook(fn) {
		return abi.Result{}, fmt.Errorf("guest[%s]: %w", fn, ErrNoHook)
	}
	in, err := l.instance(ctx, fn)
	if err != nil {
		return abi.Result{}, err
	}
	r := *req
	r.ConfigGen, r.DryRun, r.Caps = in.settings.gen, false, l.gen.caps
	r.Deadline = l.gen.deadline(ctx)
	in.run.id, in.run.key = r.ID, r.Key
	in.scratch = abi.AppendRequestHead(in.scratch[:0], &r)
	return l.call(ctx, fn, r.Object)
}

// ErrorPolicy implements abi.Guest.
func (l *lease) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	if !l.gen.hook(abi.ExportErrorPolicy) {
		return abi.Result{}, abi.ErrNoErrorPolicy
	}
	in, err := l.instance(ctx, abi.ExportErrorPolicy)
	if err != nil {
		return abi.Result{}, err
	}
	in.run.id, in.run.key = f.ID, f.Key
	in.scratch = abi.AppendFailureHead(in.scratch[:0], f)
	return l.call(ctx, abi.ExportErrorPolicy, f.Object)
}

// instance returns the lease's instance, a fresh one where the last call took
// it along.
func (l *lease) instance(ctx context.Context, fn string) (*instance, error) {
	if l.released.Load() {
		return nil, fmt.Errorf("guest[%s]: %w", fn, errReleased)
	}
	if l.in == nil {
		in, err := l.gen.another(ctx, l.gen.settings.Load())
		if err != nil {
			return nil, err
		}
		l.in = in
	}
	return l.in, nil
}

// release gives the instance and the slot back. A second time does nothing.
func (l *lease) release() {
	if l.released.Swap(true) {
		return
	}
	l.gen.put(l.in, l.slots)
	l.in = nil
}

// deadline is when a call that starts now is interrupted, on the guest's clock.
func (g *revision) deadline(ctx context.Context) time.Time {
	wait := g.limits.Timeout
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d))
	}
	return g.cfg.Now().Add(wait)
}

// call calls an entry that returns a result, with the head in scratch and the
// object behind it.
func (l *lease) call(ctx context.Context, name string, object []byte) (abi.Result, error) {
	in := l.in
	var res abi.Result
	var result int32 // its length
	err := in.enter(ctx, l.gen.entry(name), message{head: in.scratch, split: len(in.scratch), first: object}, func(v uint64) error {
		b, err := in.result(v)
		if err != nil {
			return err
		}
		result = int32(len(b)) //nolint:gosec // at most MaxBytes
		if res, err = abi.DecodeResult(b); err != nil {
			return &outputError{err}
		}
		if name == abi.ExportErrorPolicy && res.Declared != nil {
			return outputErrorf("result: error_policy declares objects: only reconcile and finalize can")
		}
		return nil
	})
	l.fuel += in.spent
	if run := abi.RunFrom(ctx); run != nil {
		if in.sources != 0 && run.Read != nil {
			run.Read(abi.Read{Source: in.sources})
		}
		if run.Cost != nil {
			run.Cost.Result = max(run.Cost.Result, result)
		}
	}
	if in.closed {
		l.in = nil
	}
	if err != nil {
		return abi.Result{}, err
	}
	l.gen.hideSecrets(&res)
	l.gen.countUnknown(name, res.Unknown)
	return res, nil
}

// describe calls the guest's describe.
func (in *instance) describe(ctx context.Context) (man *abi.Manifest, unknown []string, err error) {
	err = in.guarded(ctx, entry{name: abi.ExportDescribe, limit: in.gen.limits.Timeout}, func() error {
		v, err := in.callDescribe()
		if err != nil {
			return err
		}
		b, err := in.result(v)
		if err != nil {
			return err
		}
		if man, unknown, err = abi.DecodeManifest(b); err != nil {
			return &outputError{err}
		}
		return nil
	})
	return man, unknown, err
}

// callDescribe calls describe, the one entry without a message.
func (in *instance) callDescribe() (uint64, error) {
	if in.remote != nil {
		return in.remote.call(abi.ExportDescribe, accessNone, message{})
	}
	in.fuelBudget.enterFrame()
	err := in.function(abi.ExportDescribe).CallWithStack(&in.interrupt, in.stack[:])
	return in.stack[0], err
}

// maxUnknown is how many keys that are not known are told.
const maxUnknown = 10

// countUnknown counts keys of a result that this host does not know, and
// reports the first.
func (g *revision) countUnknown(fn string, keys []string) {
	if len(keys) == 0 {
		return
	}
	g.shared.unknownKeys.Add(uint64(len(keys)))
	g.shared.warnUnknown.Do(func() {
		keys = keys[:min(len(keys), maxUnknown)]
		g.log.Warn("ignoring unknown keys in the result; not reported again", "func", fn, "keys", keys)
	})
}

// exitCode turns wazero's words for proc_exit into ours.
func exitCode(err error) error {
	if exit, ok := errors.AsType[*vm.ExitError](err); ok {
		return fmt.Errorf("exited with code %d", exit.ExitCode())
	}
	return err
}
