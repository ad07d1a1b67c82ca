// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// minHostTime is the time that host functions take together before it is charged.
const minHostTime = 5 * time.Microsecond

// hostWork is the work of the host for a guest in host functions. It belongs to the goroutine
// that runs the guest; others only read name.
type hostWork struct {
	name  atomic.Pointer[string]
	since time.Duration // from the beginning of the entry call to the first time that is not charged
	time  time.Duration // not charged yet
}

// HostFunc returns the Go function for an import of a guest. It is a load.Linker.
func HostFunc(module, name string) vm.HostFunc {
	switch module {
	case meter.ImportModule:
		return refill
	case wasi.Module:
		f := wasiFuncs[name].Call
		return guestImport(module+"."+name, func(l *Local, stack []uint64) { f((*wasiGuest)(l), stack) })
	}
	f := hostFuncs[name]
	if f == nil { // an operation, known or not
		op := abi.Op(name)
		f = func(l *Local, stack []uint64) { stack[0] = l.operation(op, stack) }
	}
	return guestImport(module+"."+name, f)
}

// guestImport wraps the Go function of an import: every call of a guest into the host passes
// here. A call that is over ends here, before the function or after it. The bytes that a
// function works on are charged by the function, before it works on them, and its time is
// charged here.
func guestImport(name string, f func(l *Local, stack []uint64)) vm.HostFunc {
	return func(ctx context.Context, mod vm.Module, stack []uint64) {
		l := localOf(ctx)
		c := l.core
		if l.memory == nil { // in a start function the instance is not complete
			l.begin(mod)
		}
		c.work.name.Store(&name)
		c.resume()
		c.time.pause(c.work.since)
		c.checkOver(c.work.since)
		f(l, stack)
		c.lap()
		c.time.since = c.work.since
		c.checkOver(c.work.since)
		c.work.name.Store(nil)
	}
}

// refill is the function that metered code calls when its fuel or its stack has run out. A
// panic ends the guest's call.
func refill(ctx context.Context, mod vm.Module, _ []uint64) {
	c := localOf(ctx).core
	if c.fuel.fuel == nil { // start code runs
		c.fuel.bind(mod)
	}
	if int64(c.fuel.stack.Get()) < 0 { //nolint:gosec // the bits of an i64
		panic(c.Spec.LimitError(abi.LimitStack, share.ErrStack.Error(), share.ErrStack))
	}
	idle := c.time.idle
	err := c.nextSlice()
	c.time.since += c.time.idle - idle
	if err != nil {
		panic(err)
	}
}

// checkOver ends a call that is over: then it does not return.
func (c *Core) checkOver(now time.Duration) {
	if now >= c.Run.Limit { // the timer may be late
		c.fire(byDeadline)
	}
	if c.interrupt.Err() != nil {
		panic(errInterrupted)
	}
}

// resume begins to count the time of a host function, or continues after a wait.
func (c *Core) resume() { c.work.since = time.Since(c.Run.StartedAt) }

// lap charges the time since the last lap. Time shortens the slice and counts for the rate.
// It is not fuel of the call, which is the same on each run.
func (c *Core) lap() {
	h := &c.work
	now := time.Since(c.Run.StartedAt)
	h.time += now - h.since
	if h.since = now; h.time >= minHostTime {
		c.fuel.takeTime(h.time)
		h.time = 0
	}
}

// Charge implements operation.Worker: it takes the fuel for work on n bytes that is about to
// be done, a unit for each. It waits for the next slice if this one is used up, and does not
// return if the call is over.
func (l *Local) Charge(n int) {
	c := l.core
	c.lap()
	c.checkOver(c.work.since)
	if !c.fuel.take(int64(n)) {
		return
	}
	if err := c.nextSlice(); err != nil {
		panic(err)
	}
	c.resume()
}

// Pause implements operation.Worker.
func (l *Local) Pause() (had bool) { return l.core.pause() }

// Resume implements operation.Worker.
func (l *Local) Resume(had bool) { l.core.unpause(had) }

// Cancel implements operation.Worker.
func (l *Local) Cancel(cancel *context.CancelFunc) (interrupted bool) {
	return l.core.interrupt.OnOperation(cancel)
}

// opArgs are the parameters of every operation.
type opArgs struct{ reqPtr, reqLen, dstPtr, dstCap uint32 }

// outsideCall never changes and is made once: a guest may go on asking as fast as it can.
var outsideCall = operation.Refuse(abi.StatusUnavailable, "OutsideCall", "operations work only in entry calls, not in start code, buffer or describe")

// operation answers one operation. Whatever the guest passed, there is an answer: a trap here
// would leave the guest's own stack wrong (ABI.md, 5).
func (l *Local) operation(op abi.Op, stack []uint64) uint64 {
	a := opArgs{u32(stack[0]), u32(stack[1]), u32(stack[2]), u32(stack[3])}
	account := l.core.Spec.Account
	l.held.Release(account)
	if !inside(l.memory, a.dstPtr, a.dstCap) {
		// Checked first: if the answer cannot be written, nothing is done.
		return abi.PackResult(abi.StatusBadRequest, 0)
	}
	res := l.respond(op, a)
	if err := l.held.Hold(account, res.Body); err != nil {
		l.core.Run.Sources |= abi.SourceLimit
		res = operation.NoMemory("the answer of "+string(op)+", which may have been carried out", err)
		_ = l.held.Hold(account, res.Body) // which is small
	}
	if uint64(len(res.Body)) <= uint64(a.dstCap) {
		l.Charge(len(res.Body))
		l.memory.Write(a.dstPtr, res.Body)
	}
	return abi.PackResult(res.Status, uint32(len(res.Body))) //nolint:gosec // at most MaxBytes
}

// respond checks that an operation may run, and has the host answer it.
func (l *Local) respond(op abi.Op, a opArgs) abi.Response {
	if l.core.Run.Access == operation.AccessNone {
		return outsideCall
	}
	req, ok := l.memory.Read(a.reqPtr, a.reqLen)
	if !ok {
		return operation.Refuse(abi.StatusBadRequest, "BadPointer", blockText("request", a.reqPtr, a.reqLen))
	}
	return l.host.Operation(op, req)
}
