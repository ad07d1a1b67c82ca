// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// unbounded is the answer of the host function budget for something that is not bounded or
// not known.
const unbounded = -1

// fuelBudget is the host's side of the counters of an instance. It belongs to the goroutine
// that runs the guest.
type fuelBudget struct {
	// fuel and stack are nil before start code first asks for fuel, and always if the guest
	// is in another process.
	fuel, stack  vm.Global
	maxStack     int64
	limit        int64 // fuel of one call; 0 is not bounded
	granted      int64 // fuel in this call
	slices       int   // in which it was granted
	hostTime     int64 // of this call's host functions, in units of fuel that this time is worth
	paid         int64 // the part of this call that the rate of the module has counted
	hasTimeSlice bool  // whether the instance has a turn of the CPUScheduler
	inTurn       bool  // whether the call has started with a turn
	others       share.Runnable
	sizer        share.SliceSizer
	since        time.Time // when the slice began
}

func (t *fuelBudget) bind(mod vm.Module) {
	t.fuel = mod.ExportedGlobal(meter.FuelGlobal).(vm.Global)
	t.stack = mod.ExportedGlobal(meter.StackGlobal).(vm.Global)
}

// spent returns the fuel that this call has used.
func (t *fuelBudget) spent() int64 {
	if t.fuel == nil {
		return t.granted // in a guest process, or 0
	}
	return t.granted - int64(t.fuel.Get()) //nolint:gosec // the bits of an i64
}

// left returns the fuel that this call may still use, or unbounded.
func (t *fuelBudget) left() int64 {
	if t.limit == 0 {
		return unbounded
	}
	return max(0, t.limit-t.spent())
}

// begin starts an entry call with a slice.
func (t *fuelBudget) begin(limit int64, now time.Time) {
	t.limit, t.granted, t.slices, t.paid, t.hostTime, t.inTurn = limit, 0, 0, 0, 0, false
	if t.fuel != nil {
		t.fuel.Set(0)
		t.grant(now)
	}
}

// grant adds fuel for one more slice, within the limit.
func (t *fuelBudget) grant(now time.Time) {
	t.slices++
	t.since = now
	to := max(t.granted, t.spent()) + t.sizer.Size()
	if t.limit > 0 {
		to = min(to, t.limit)
	}
	t.fuel.Set(t.fuel.Get() + uint64(to-t.granted)) //nolint:gosec // the bits of an i64
	t.granted = to
}

// take takes fuel for work of the host, and reports whether the slice is used up.
func (t *fuelBudget) take(n int64) bool {
	if t.fuel == nil {
		return false
	}
	left := int64(t.fuel.Get()) - n //nolint:gosec // the bits of an i64
	t.fuel.Set(uint64(left))        //nolint:gosec // as above
	return left < 0
}

// takeTime shortens the slice by time in which the host worked for the guest, at the rate at
// which slices are made. The fuel that the guest has used stays the same.
func (t *fuelBudget) takeTime(took time.Duration) {
	if t.fuel == nil {
		return
	}
	n := t.sizer.Worth(took)
	t.take(n)
	t.granted -= n
	t.hostTime += n
}

// used returns the part of this call that the rate of the module counts.
func (t *fuelBudget) used() int64 { return t.spent() + t.hostTime }

// enterFrame gives the guest the whole stack; it is due before each call of a function.
func (t *fuelBudget) enterFrame() {
	if t.stack != nil {
		t.stack.Set(uint64(t.maxStack)) //nolint:gosec // not negative
	}
}

// nextSlice grants one more slice of fuel, once it is this instance's turn, or returns the
// reason why the call ends.
func (c *Core) nextSlice() error {
	t := &c.fuel
	if used := t.spent(); t.limit > 0 && used > t.limit {
		return c.Spec.LimitError(abi.LimitFuel, fmt.Sprintf("%v: %d used", share.ErrFuel, used), share.ErrFuel)
	}
	now := time.Now()
	if !now.Before(c.Run.Deadline) { // the timer may be late
		c.fire(byDeadline)
	}
	if t.slices > 0 {
		t.sizer.Learn(now.Sub(t.since))
		if !c.pay() || !c.acquireTimeSlice() {
			return errInterrupted
		}
		now = time.Now()
	}
	if c.interrupt.Err() != nil {
		return errInterrupted
	}
	t.grant(now)
	return nil
}

// pay counts the fuel that was used since it was last called, and waits until the module's
// rate allows it. It returns false if the call ends first.
func (c *Core) pay() bool {
	t, rate := &c.fuel, c.Spec.Limits.FuelRate
	if rate == 0 {
		return true
	}
	used := t.used()
	wait := c.Spec.Share.Rate.Charge(time.Now(), rate, used-t.paid)
	t.paid = used
	if wait <= 0 {
		return true
	}
	c.releaseTimeSlice()
	defer c.waiting(time.Now())
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.interrupt.done:
		return false
	}
}

// startTurn waits for a turn if the tenant has made too many calls without one. It returns
// false if the call ends first.
func (c *Core) startTurn(now time.Time) bool {
	t, cpus := &c.fuel, c.Spec.CPUs
	if cpus == nil || t.fuel == nil || !c.Spec.Share.Short.Exceeded(now) {
		return true
	}
	defer func() {
		c.waiting(now)
		t.since = time.Now()
	}()
	t.hasTimeSlice = cpus.Take(c.Spec.Share, false, c.interrupt.done)
	t.inTurn = t.hasTimeSlice
	return t.hasTimeSlice
}

// acquireTimeSlice waits for the instance's turn, if guests share the CPUs. It returns false
// if the call ends first.
func (c *Core) acquireTimeSlice() bool {
	t, cpus := &c.fuel, c.Spec.CPUs
	if cpus == nil || t.slices < share.FreeSlices {
		cpus.Yield(&t.others)
		return true
	}
	defer c.waiting(time.Now())
	if t.hasTimeSlice = cpus.Take(c.Spec.Share, t.hasTimeSlice, c.interrupt.done); t.hasTimeSlice {
		cpus.Yield(&t.others)
	}
	return t.hasTimeSlice
}

// waiting counts the time since startedAt as time in which the guest had to wait, and nothing
// was done for it.
func (c *Core) waiting(startedAt time.Time) { c.Run.Waited += c.time.idled(startedAt) }

// releaseTimeSlice ends the instance's turn, if it has one.
func (c *Core) releaseTimeSlice() {
	if c.fuel.hasTimeSlice {
		c.fuel.hasTimeSlice = false
		c.Spec.CPUs.Give()
	}
}

// pause gives up the instance's turn before a wait for something other than a CPU, and
// reports whether it had one.
func (c *Core) pause() (had bool) {
	c.lap()
	had = c.fuel.hasTimeSlice
	c.releaseTimeSlice()
	return had
}

// unpause ends pause.
func (c *Core) unpause(had bool) {
	if had {
		c.acquireTimeSlice()
	}
	c.resume()
}

// settle ends the accounts of an entry call. The next call waits for the fuel that was used
// beyond the module's rate.
func (c *Core) settle() {
	c.releaseTimeSlice()
	t := &c.fuel
	c.Spent = t.spent()
	if !t.inTurn {
		c.Spec.Share.Short.Charge(c.Run.StartedAt, t.used(), t.sizer.Size())
	}
	c.Spec.Share.Fuel.Add(uint64(max(0, c.Spent))) //nolint:gosec // not negative
	if rate := c.Spec.Limits.FuelRate; rate > 0 {
		c.Spec.Share.Rate.Charge(time.Now(), rate, t.used()-t.paid)
	}
}

// traced returns reason with the guest's stack trace that wazero put into err.
func traced(reason, err error) error {
	if err == nil {
		return reason
	}
	_, trace, ok := strings.Cut(err.Error(), operation.TraceStart)
	if !ok {
		return reason
	}
	trace = strings.Replace(trace, "\n\t"+meter.ImportModule+"."+meter.RefillFunc+"()", "", 1)
	return fmt.Errorf("%w"+operation.TraceStart+"%s", reason, trace)
}
