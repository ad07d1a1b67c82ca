package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/meter"
)

var (
	// ErrFuel is matched by the error of a call that used more than Limits.Fuel.
	ErrFuel = errors.New("ran out of fuel")
	// ErrStack is matched by the error of a guest whose calls are nested too
	// deeply.
	ErrStack = errors.New("stack overflow: calls nested too deeply")

	errInterrupted = errors.New("interrupted") // verdict knows by what
)

// fuelBudget is the host's side of the counters of a metered instance, and belongs to
// the goroutine that runs the guest.
type fuelBudget struct {
	// fuel and stack are nil before the start code of a metered instance first asks
	// for fuel, and always in others.
	fuel, stack  vm.Global
	maxStack     int64
	limit        int64 // fuel of one call; 0 is not bounded
	granted      int64 // fuel in this call
	slices       int   // that it was granted in
	hostTime     int64 // of this call's host functions, in units of fuel that it would have got in it
	paid         int64 // what of this call Config.FuelRate has counted
	hasTimeSlice bool  // whether the instance has a turn of Config.CPUScheduler
	others       runnable
	sliceSizer   sliceSizer
	since        time.Time // when the slice began
}

func (t *fuelBudget) bind(mod vm.Module) {
	t.fuel = mod.ExportedGlobal(meter.FuelGlobal).(vm.Global)
	t.stack = mod.ExportedGlobal(meter.StackGlobal).(vm.Global)
}

// spent is the fuel that this call has used.
func (t *fuelBudget) spent() int64 {
	if t.fuel == nil {
		return t.granted // in a guest process, or 0
	}
	return t.granted - int64(t.fuel.Get()) //nolint:gosec // the bits of an i64
}

// left is the fuel that this call may use from now on, or unbounded.
func (t *fuelBudget) left() int64 {
	if t.limit == 0 {
		return unbounded
	}
	return max(0, t.limit-t.spent())
}

// begin starts an entry call with a slice.
func (t *fuelBudget) begin(limit int64, now time.Time) {
	t.limit, t.granted, t.slices, t.paid, t.hostTime = limit, 0, 0, 0, 0
	if t.fuel != nil {
		t.fuel.Set(0)
		t.grant(now)
	}
}

// grant adds fuel for one more slice, within the limit.
func (t *fuelBudget) grant(now time.Time) {
	t.slices++
	t.since = now
	to := max(t.granted, t.spent()) + t.sliceSizer.slice
	if t.limit > 0 {
		to = min(to, t.limit)
	}
	t.fuel.Set(t.fuel.Get() + uint64(to-t.granted)) //nolint:gosec // the bits of an i64
	t.granted = to
}

// take takes fuel for what the host is about to do, and reports whether the slice
// is used up.
func (t *fuelBudget) take(n int64) bool {
	if t.fuel == nil {
		return false
	}
	left := int64(t.fuel.Get()) - n //nolint:gosec // the bits of an i64
	t.fuel.Set(uint64(left))        //nolint:gosec // as above
	return left < 0
}

// takeTime shortens the slice by time in which the host worked for the guest, at
// the rate at which slices are made. What the guest has spent stays the same.
func (t *fuelBudget) takeTime(took time.Duration) {
	if t.fuel == nil {
		return
	}
	n := t.sliceSizer.worth(took)
	t.take(n)
	t.granted -= n
	t.hostTime += n
}

// used is what Config.FuelRate counts of this call.
func (t *fuelBudget) used() int64 { return t.spent() + t.hostTime }

// enterFrame gives the guest the whole stack; it is due before each call of one
// of its functions.
func (t *fuelBudget) enterFrame() {
	if t.stack != nil {
		t.stack.Set(uint64(t.maxStack)) //nolint:gosec // not negative
	}
}

// refill is the function that metered code calls where its fuel or its stack
// has run out. A panic ends the guest's call.
func refill(ctx context.Context, mod vm.Module, _ []uint64) {
	in := ctx.Value(instanceKey{}).(*instance)
	if in.fuelBudget.fuel == nil { // start code runs
		in.fuelBudget.bind(mod)
	}
	if int64(in.fuelBudget.stack.Get()) < 0 { //nolint:gosec // the bits of an i64
		panic(in.gen.limitError(abi.LimitStack, ErrStack.Error(), ErrStack))
	}
	idle := in.run.idle
	err := in.nextSlice()
	in.run.since += in.run.idle - idle
	if err != nil {
		panic(err)
	}
}

// nextSlice grants one more slice of fuel, once it is this instance's turn, or
// says why not.
func (in *instance) nextSlice() error {
	t := &in.fuelBudget
	if used := t.spent(); t.limit > 0 && used > t.limit {
		return in.gen.limitError(abi.LimitFuel, fmt.Sprintf("%v: %d used", ErrFuel, used), ErrFuel)
	}
	now := time.Now()
	if !now.Before(in.run.deadline) { // the timer may be late
		in.interrupt.fire(byDeadline)
	}
	if t.slices > 0 {
		t.sliceSizer.learn(now.Sub(t.since))
		if !in.pay() || !in.acquireTimeSlice() {
			return errInterrupted
		}
		now = time.Now()
	}
	if in.interrupt.Err() != nil {
		return errInterrupted
	}
	t.grant(now)
	return nil
}

// pay counts what was spent since it was last called, and waits until the
// module's rate allows it. It reports false where the call is over before.
func (in *instance) pay() bool {
	t, rate := &in.fuelBudget, in.gen.cfg.FuelRate
	if rate == 0 {
		return true
	}
	used := t.used()
	wait := in.gen.shared.rate.charge(time.Now(), rate, used-t.paid)
	t.paid = used
	if wait <= 0 {
		return true
	}
	in.releaseTimeSlice()
	defer in.waiting(time.Now())
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-in.interrupt.done:
		return false
	}
}

// acquireTimeSlice waits for the instance's turn, where guests share the CPUs. It
// reports false where the call is over before.
func (in *instance) acquireTimeSlice() bool {
	cpuScheduler := in.gen.cfg.CPUScheduler
	if cpuScheduler == nil || in.fuelBudget.slices < freeSlices {
		cpuScheduler.yield(&in.fuelBudget.others)
		return true
	}
	defer in.waiting(time.Now())
	if in.fuelBudget.hasTimeSlice = cpuScheduler.take(in.gen.shared, in.fuelBudget.hasTimeSlice, in.interrupt.done); in.fuelBudget.hasTimeSlice {
		cpuScheduler.yield(&in.fuelBudget.others)
	}
	return in.fuelBudget.hasTimeSlice
}

// waiting counts the time since began as time in which the guest could do
// nothing, and nothing was done for it.
func (in *instance) waiting(startedAt time.Time) { in.run.waited += in.run.idled(startedAt) }

// releaseTimeSlice ends the instance's turn, if it has one.
func (in *instance) releaseTimeSlice() {
	if in.fuelBudget.hasTimeSlice {
		in.fuelBudget.hasTimeSlice = false
		in.gen.cfg.CPUScheduler.give()
	}
}

// withoutTimeSlice runs f, which waits for something else than a CPU, without the
// instance's turn.
func (in *instance) withoutTimeSlice(f func()) {
	in.lap()
	defer in.resume()
	had := in.fuelBudget.hasTimeSlice
	in.releaseTimeSlice()
	f()
	if had {
		in.acquireTimeSlice()
	}
}

// settle ends the accounts of an entry call. The next call waits for the fuel
// used beyond the module's rate.
func (in *instance) settle() {
	in.releaseTimeSlice()
	t := &in.fuelBudget
	in.spent = t.spent()
	in.gen.shared.fuel.Add(uint64(max(0, in.spent))) //nolint:gosec // not negative
	if rate := in.gen.cfg.FuelRate; rate > 0 {
		in.gen.shared.rate.charge(time.Now(), rate, t.used()-t.paid)
	}
}

// traceStart is before the guest's stack in an error of wazero.
const traceStart = "\nwasm stack trace:"

// traced is reason with the guest's stack trace that wazero put into err.
func traced(reason, err error) error {
	if err == nil {
		return reason
	}
	_, trace, ok := strings.Cut(err.Error(), traceStart)
	if !ok {
		return reason
	}
	trace = strings.Replace(trace, "\n\t"+meter.ImportModule+"."+meter.RefillFunc+"()", "", 1)
	return fmt.Errorf("%w"+traceStart+"%s", reason, trace)
}
