package host

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
)

// minHostTime is what host functions take together before it is charged.
const minHostTime = 5 * time.Microsecond

// hostWork is what the host does for a guest in host functions. It belongs to the
// goroutine that runs the guest; others only read name.
type hostWork struct {
	name  atomic.Pointer[string]
	since time.Duration // from the beginning of the entry call to where time is not charged yet
	time  time.Duration // that is not charged yet
}

// guestImport makes the Go side of an import: whatever a guest calls goes through
// here. A call that is over ends here, before the function and behind it. What
// the function takes is charged: its bytes by the function itself, with charge,
// before it works on them, and its time here.
func guestImport(name string, f func(in *instance, stack []uint64)) vm.HostFunc {
	return func(ctx context.Context, mod vm.Module, stack []uint64) {
		in := ctx.Value(instanceKey{}).(*instance)
		if in.memory == nil { // in a start function the instance is not complete
			in.begin(mod)
		}
		in.host.name.Store(&name)
		in.resume()
		in.run.pause(in.host.since)
		in.checkOver(in.host.since)
		f(in, stack)
		in.lap()
		in.run.since = in.host.since
		in.checkOver(in.host.since)
		in.host.name.Store(nil)
	}
}

// begin completes an instance as far as start code needs it.
func (in *instance) begin(mod vm.Module) {
	in.memory, in.module = mod.Memory(), mod
	if in.fuelBudget.fuel == nil {
		in.fuelBudget.bind(mod)
	}
}

// checkOver ends a call that is over; it does not return then.
func (in *instance) checkOver(now time.Duration) {
	if now >= in.run.limit { // the timer may be late
		in.interrupt.fire(byDeadline)
	}
	if in.interrupt.Err() != nil {
		panic(errInterrupted)
	}
}

// resume begins to count the time of a host function, or goes on behind what
// waited.
func (in *instance) resume() { in.host.since = time.Since(in.run.startedAt) }

// lap charges the time since the last one. Time shortens the slice and counts for
// the rate; it is not fuel of the call, which is the same on each run.
func (in *instance) lap() {
	h := &in.host
	now := time.Since(in.run.startedAt)
	h.time += now - h.since
	if h.since = now; h.time >= minHostTime {
		in.fuelBudget.takeTime(h.time)
		h.time = 0
	}
}

// charge takes the fuel for work on so many bytes, a unit for each, which is about
// to be done. It waits for a further slice where this one is used up, and does not
// return where the call is over.
func (in *instance) charge(n int) {
	if in.remote != nil { // its process does
		return
	}
	in.lap()
	in.checkOver(in.host.since)
	if !in.fuelBudget.take(int64(n)) {
		return
	}
	if err := in.nextSlice(); err != nil {
		panic(err)
	}
	in.resume()
}

// wasiFuncs are the functions of WASI that there are.
var wasiFuncs = wasi.Funcs()

// wasiFunc makes the Go side of an import from WASI.
func wasiFunc(name string) vm.HostFunc {
	f := wasiFuncs[name].Call
	return guestImport(wasi.Module+"."+name, func(in *instance, stack []uint64) { f((*wasiGuest)(in), stack) })
}

// hostFunc makes the Go side of an import from the host. A name that is none of
// hostFuncs is an operation, known or not.
func hostFunc(name string) vm.HostFunc {
	f := hostFuncs[name]
	if f == nil {
		op := abi.Op(name)
		f = func(in *instance, stack []uint64) {
			stack[0] = in.operation(op, opArgs{u32(stack[0]), u32(stack[1]), u32(stack[2]), u32(stack[3])})
		}
	}
	return guestImport(abi.ImportModule+"."+name, f)
}

// wasiGuest is an instance as package wasi sees it.
type wasiGuest instance

// Memory implements wasi.Guest.
func (g *wasiGuest) Memory() wasi.Memory { return g.memory }

// Charge implements wasi.Guest.
func (g *wasiGuest) Charge(n int) { (*instance)(g).charge(n) }

// Program implements wasi.Guest.
func (g *wasiGuest) Program() string { return g.gen.program() }

// Descriptors implements wasi.Guest.
func (g *wasiGuest) Descriptors() *wasi.Descriptors { return &g.descriptors }

// Files implements wasi.Guest.
func (g *wasiGuest) Files() *wasi.Files { return g.gen.code.files }

// Now implements wasi.Guest.
func (g *wasiGuest) Now() time.Time { return (*instance)(g).now() }

// Mono implements wasi.Guest.
func (g *wasiGuest) Mono() int64 { return (*instance)(g).mono() }

// Random implements wasi.Guest.
func (g *wasiGuest) Random(b []byte) error { return (*instance)(g).random(b) }

// Sleep implements wasi.Guest.
func (g *wasiGuest) Sleep(d time.Duration) {
	g.run.sources |= abi.SourceClock
	(*instance)(g).withoutTimeSlice(func() {
		defer g.run.idled(time.Now())
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-g.interrupt.done:
		}
	})
}

// Write implements wasi.Guest.
func (g *wasiGuest) Write(fd int32, b []byte) {
	s := g.output.stdout()
	if fd == 2 {
		s = g.output.stderr()
	}
	s.write(b)
}

// Exit implements wasi.Guest.
func (g *wasiGuest) Exit(code uint32) {
	_ = g.module.CloseWithExitCode(&g.interrupt, code) // nothing is open whose closing could fail
	panic(vm.NewExitError(code))
}
