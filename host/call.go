package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmctl/wasmctl/abi"
)

// lease is a guest that was acquired: one slot of a generation and, most of
// the time, an instance. It implements abi.Guest.
type lease struct {
	gen *generation
	// in is nil after a call that the instance did not survive.
	in       *instance
	released atomic.Bool
}

// configGen is the number of the settings; they cannot be changed yet.
const configGen = 1

var errReleased = errors.New("used after it was released")

// Generation implements abi.Guest.
func (l *lease) Generation() uint64 { return l.gen.number }

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
	in, err := l.instance(ctx, fn)
	if err != nil {
		return abi.Result{}, err
	}
	e := entry{fn, in.reconcile}
	if fn == abi.ExportFinalize {
		e.fn = in.finalize
	}
	r := *req
	r.ConfigGen, r.DryRun, r.Caps = configGen, false, l.gen.caps
	r.Deadline = l.gen.deadline(ctx)
	in.run.id, in.run.key = r.ID, r.Key
	in.scratch = abi.AppendRequestHead(in.scratch[:0], &r)
	return l.call(ctx, e, r.Object)
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
	return l.call(ctx, entry{abi.ExportErrorPolicy, in.errorPolicy}, f.Object)
}

// instance returns the lease's instance, a fresh one where the last call took
// it along.
func (l *lease) instance(ctx context.Context, fn string) (*instance, error) {
	if l.released.Load() {
		return nil, fmt.Errorf("guest[%s]: %w", fn, errReleased)
	}
	if l.in == nil {
		in, err := l.gen.newInstance(ctx)
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
	l.gen.put(l.in)
	l.in = nil
	l.gen.release()
}

// deadline is when a call that starts now is interrupted, on the guest's clock.
func (g *generation) deadline(ctx context.Context) time.Time {
	wait := g.limits.Timeout
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d))
	}
	return g.cfg.Now().Add(wait)
}

// entry is one of a guest's entries.
type entry struct {
	name string
	fn   api.Function
}

// outputError is an error of what a guest returned.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

func outputErrorf(format string, args ...any) error { return &outputError{fmt.Errorf(format, args...)} }

// call calls an entry with the head in scratch and the object behind it.
func (l *lease) call(ctx context.Context, e entry, object []byte) (abi.Result, error) {
	in := l.in
	if n := len(in.scratch) + len(object); n > abi.MaxBytes {
		return abi.Result{}, fmt.Errorf("guest[%s]: request of %d bytes: %w", e.name, n, abi.ErrTooLarge)
	}
	var res abi.Result
	err := in.guarded(ctx, e.name, func() (err error) {
		res, err = in.enter(e.fn, object)
		return err
	})
	if err != nil {
		in.close(ctx)
		l.in = nil
		return abi.Result{}, err
	}
	if len(res.Unknown) > 0 {
		l.gen.countUnknown(e.name, res.Unknown)
	}
	return res, nil
}

// enter hands a request over and decodes the result: section 2 of ABI.md.
func (in *instance) enter(fn api.Function, object []byte) (abi.Result, error) {
	size := uint32(len(in.scratch) + len(object)) //nolint:gosec // at most MaxBytes
	in.stack[0] = uint64(size)
	if err := in.buffer.CallWithStack(&in.interrupt, in.stack[:]); err != nil {
		return abi.Result{}, err
	}
	ptr := uint32(in.stack[0]) //nolint:gosec // an i32
	if err := in.checkBuffer(ptr, size); err != nil {
		return abi.Result{}, err
	}
	in.memory.Write(ptr, in.scratch)
	in.memory.Write(ptr+uint32(len(in.scratch)), object) //nolint:gosec // at most MaxBytes
	in.stack[0], in.stack[1] = uint64(ptr), uint64(size)
	in.run.entered = true
	err := fn.CallWithStack(&in.interrupt, in.stack[:])
	in.run.entered = false
	if err != nil {
		return abi.Result{}, err
	}
	b, err := in.result(in.stack[0])
	if err != nil {
		return abi.Result{}, err
	}
	res, err := abi.DecodeResult(b)
	if err != nil {
		return abi.Result{}, &outputError{err}
	}
	return res, nil
}

func (in *instance) checkBuffer(ptr, size uint32) error {
	switch {
	case ptr == 0:
		return outputErrorf("buffer refused a request of %d bytes", size)
	case ptr%8 != 0:
		return outputErrorf("buffer returned %d, which is not 8-byte aligned", ptr)
	case !inside(in.memory, ptr, size):
		return outputErrorf("buffer returned %d, but %d bytes from there do not lie in memory of %d bytes", ptr, size, in.memory.Size())
	}
	return nil
}

// result returns a view of what an entry returned; it holds until the next
// call.
func (in *instance) result(v uint64) ([]byte, error) {
	ptr, length := abi.UnpackPointer(v)
	b, ok := in.memory.Read(ptr, length)
	if !ok {
		return nil, outputErrorf("result of %d bytes at %d does not lie in memory of %d bytes", length, ptr, in.memory.Size())
	}
	return b, nil
}

// describe calls the guest's describe.
func (in *instance) describe(ctx context.Context) (man *abi.Manifest, unknown []string, err error) {
	fn := in.module.ExportedFunction(abi.ExportDescribe)
	err = in.guarded(ctx, abi.ExportDescribe, func() error {
		if err := fn.CallWithStack(&in.interrupt, in.stack[:]); err != nil {
			return err
		}
		b, err := in.result(in.stack[0])
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

// countUnknown counts keys of a result that this host does not know, and tells
// of the first.
func (g *generation) countUnknown(fn string, keys []string) {
	g.shared.unknownKeys.Add(uint64(len(keys)))
	g.shared.warnUnknown.Do(func() {
		if len(keys) > 10 {
			keys = keys[:10]
		}
		g.log.Warn("result has keys that this host does not know; they are ignored, and not reported again", "func", fn, "keys", keys)
	})
}

// exitCode turns wazero's words for proc_exit into ours.
func exitCode(err error) error {
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		return fmt.Errorf("exited with code %d", exit.ExitCode())
	}
	return err
}

// blockText is how blocks are named in messages.
func blockText(what string, ptr, length uint32) string {
	return fmt.Sprintf("%s block of %d bytes at %d does not lie in memory", what, length, ptr)
}
