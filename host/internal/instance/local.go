// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// Local is a guest in this process: an instance of wazero.
type Local struct {
	core   *Core
	host   operation.Host
	code   *load.Code
	ctx    callContext
	module vm.Module
	memory vm.Memory
	linear linearMemory
	held   operation.Held

	// Functions are looked up once, which takes microseconds, and called with one stack,
	// which needs no allocation. Those of optional exports are looked up when they are
	// first called.
	buffer, reconcile vm.Function
	optional          map[string]vm.Function
	stack             [2]uint64

	descriptors wasi.Descriptors
	// given holds the random bytes and times that start code received, while an image is
	// made; else nil.
	given *layout.Given
}

// callContext is the context of all calls into a guest. Host functions find the guest by it.
type callContext struct {
	*Interrupt

	local *Local
}

// localKey is the context key under which host functions find their guest.
type localKey struct{}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (localKey{}) {
		return c.local
	}
	return nil
}

// localOf returns the guest that has called a host function.
func localOf(ctx context.Context) *Local { return ctx.Value(localKey{}).(*Local) }

// NewLocal returns a guest whose requests host answers. core must be initialized with it.
func NewLocal(core *Core, code *load.Code, host operation.Host) *Local {
	l := &Local{core: core, host: host, code: code}
	l.ctx = callContext{&core.interrupt, l}
	l.linear.local, l.linear.start = l, code.Base()
	return l
}

// newLocal returns a guest that a desk of this process serves.
func newLocal(core *Core, spec *Spec) (*Local, *operation.Desk) {
	l := NewLocal(core, spec.Code, nil)
	desk := operation.NewDesk(spec.Env, &core.Run, l)
	l.host = desk
	return l, desk
}

// Open implements Guest.
func (l *Local) Open(context.Context) error { return l.linear.reserve() }

// Configurations of instances. They give a guest nothing: its imports are all that it may
// use.
var (
	started = vm.NewConfig(abi.ExportInitialize)
	// atRest runs no code of the module.
	atRest = vm.NewConfig()
)

// Start implements Guest.
func (l *Local) Start() (err error) {
	l.module, err = l.instantiate(started)
	if err == nil && l.module.IsClosed() { // proc_exit(0) is no error to wazero
		err = errors.New("exited with code 0")
	}
	if err == nil {
		l.complete()
	}
	return err
}

func (l *Local) instantiate(config vm.Config) (vm.Module, error) {
	return l.code.Instantiate(vm.WithAllocator(&l.ctx, &l.linear), config)
}

// complete looks up what calls need.
func (l *Local) complete() {
	l.core.fuel.bind(l.module)
	l.memory = l.module.Memory()
	l.buffer = l.module.ExportedFunction(abi.ExportBuffer)
	l.reconcile = l.module.ExportedFunction(abi.ExportReconcile)
}

// begin completes a guest as far as host functions in start code need it.
func (l *Local) begin(mod vm.Module) {
	l.memory, l.module = mod.Memory(), mod
	if l.core.fuel.fuel == nil {
		l.core.fuel.bind(mod)
	}
}

// function returns an entry of the guest; it must be exported.
func (l *Local) function(name string) vm.Function {
	if name == abi.ExportReconcile {
		return l.reconcile
	}
	fn := l.optional[name]
	if fn == nil {
		fn = l.module.ExportedFunction(name)
		if l.optional == nil {
			l.optional = map[string]vm.Function{}
		}
		l.optional[name] = fn
	}
	return fn
}

// Call implements Guest: it hands a message over, and calls the entry, by section 2 of
// ABI.md.
func (l *Local) Call(e Entry, m Message) (uint64, error) {
	l.linear.refused = nil
	fn := l.function(e.Name)
	if !e.bare() {
		ptr, err := l.pass(m)
		if err != nil {
			return 0, err
		}
		l.stack[0], l.stack[1] = uint64(ptr), uint64(m.Size())
	}
	l.core.Run.Access = e.Access
	l.core.fuel.enterFrame()
	err := fn.CallWithStack(&l.ctx, l.stack[:])
	l.core.Run.Access = operation.AccessNone
	return l.stack[0], err
}

// pass writes a message to the buffer of the guest, and returns its address.
func (l *Local) pass(m Message) (ptr uint32, err error) {
	size := uint32(m.Size()) //nolint:gosec // at most MaxBytes
	l.stack[0] = uint64(size)
	l.core.fuel.enterFrame()
	if err := l.buffer.CallWithStack(&l.ctx, l.stack[:]); err != nil {
		return 0, err
	}
	ptr = u32(l.stack[0])
	switch {
	case ptr == 0:
		return 0, Outputf("%w refused a request of %d bytes", abi.ErrBuffer, size)
	case ptr%8 != 0:
		return 0, Outputf("%w returned %d: want 8-byte alignment", abi.ErrBuffer, ptr)
	case !inside(l.memory, ptr, size):
		return 0, Outputf("%w returned %d, but %d bytes from there do not lie in memory of %d bytes", abi.ErrBuffer, ptr, size, l.memory.Size())
	}
	at := ptr
	for _, part := range [...][]byte{m.Head[:m.Split], m.First, m.Head[m.Split:], m.Second} {
		l.memory.Write(at, part)
		at += uint32(len(part)) //nolint:gosec // at most MaxBytes
	}
	return ptr, nil
}

// Result implements Guest.
func (l *Local) Result(v uint64) ([]byte, error) {
	ptr, length := abi.UnpackPointer(v)
	b, ok := l.memory.Read(ptr, length)
	if !ok {
		return nil, Outputf("result of %d bytes at %d does not lie in memory of %d bytes", length, ptr, l.memory.Size())
	}
	if length > share.ResultBytes {
		what := fmt.Sprintf("result of %d bytes is longer than it may be", length)
		return nil, &OutputError{l.core.Spec.LimitError(abi.LimitResultBytes, what, abi.ErrTooLarge)}
	}
	return b, nil
}

// Ended implements Guest.
func (l *Local) Ended(took time.Duration) {
	l.core.time.pause(took)
	l.held.Release(l.core.Spec.Account)
}

// Refused implements Guest.
func (l *Local) Refused() error { return l.linear.refused }

// Size implements Guest. A guest whose start code did not begin has no memory.
func (l *Local) Size() int64 {
	if l.memory == nil {
		return 0
	}
	return int64(l.memory.Size())
}

// Memory returns the linear memory.
func (l *Local) Memory() vm.Memory { return l.memory }

// Alive implements Guest.
func (l *Local) Alive() bool { return true }

// Interrupted implements Guest: wazero and the host functions watch the context.
func (l *Local) Interrupted() {}

// Close implements Guest.
func (l *Local) Close(ctx context.Context) {
	if l.module != nil {
		_ = l.module.Close(ctx) // there are no files whose closing could fail
	}
	l.linear.free()
	// The functions have the stacks, of megabytes after a deep recursion. Go may keep a
	// timer that was stopped, and the instance with it, until much later.
	l.buffer, l.reconcile, l.optional = nil, nil, nil
}

// Slices returns the number of slices of fuel in which the last call was granted.
func (l *Local) Slices() int { return l.core.fuel.slices }

// UseStack uses up the stack, which the next call must have again.
func (l *Local) UseStack() { l.core.fuel.stack.Set(0) }
