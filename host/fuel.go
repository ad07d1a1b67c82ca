package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/meter"
)

var (
	// ErrFuel is matched by the error of a call that used more than Limits.Fuel.
	ErrFuel = errors.New("ran out of fuel")
	// ErrStack is matched by the error of a guest whose calls are nested too
	// deeply.
	ErrStack = errors.New("stack overflow: its calls are nested too deeply")

	errInterrupted = errors.New("interrupted") // verdict knows by what
)

// tank is the host's side of the counters of a metered instance, and belongs to
// the goroutine that runs the guest.
type tank struct {
	// fuel and stack are nil before the start code of a metered instance first asks
	// for fuel, and always in others.
	fuel, stack api.MutableGlobal
	maxStack    int64
	limit       int64 // fuel of one call; 0 is not bounded
	granted     int64 // fuel in this call
	slices      int   // that it was granted in
	paid        int64 // what of this call Config.FuelRate has counted
	turn        bool  // whether the instance has a turn of Config.Shares
	others      runnable
	pace        pace
	since       time.Time // when the slice began
}

func (t *tank) bind(mod api.Module) {
	t.fuel = mod.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)
	t.stack = mod.ExportedGlobal(meter.StackGlobal).(api.MutableGlobal)
}

// spent is the fuel that this call has used.
func (t *tank) spent() int64 {
	if t.fuel == nil {
		return 0
	}
	return t.granted - int64(t.fuel.Get()) //nolint:gosec // the bits of an i64
}

// left is the fuel that this call may use from now on, or unbounded.
func (t *tank) left() int64 {
	if t.limit == 0 {
		return unbounded
	}
	return max(0, t.limit-t.spent())
}

// begin starts an entry call with a slice.
func (t *tank) begin(limit int64, now time.Time) {
	t.limit, t.granted, t.slices, t.paid = limit, 0, 0, 0
	if t.fuel != nil {
		t.fuel.Set(0)
		t.grant(now)
	}
}

// grant fills the tank for one more slice, within the limit.
func (t *tank) grant(now time.Time) {
	t.slices++
	t.since = now
	to := max(t.granted, t.spent()) + t.pace.slice
	if t.limit > 0 {
		to = min(to, t.limit)
	}
	t.fuel.Set(t.fuel.Get() + uint64(to-t.granted)) //nolint:gosec // the bits of an i64
	t.granted = to
}

// enterFrame gives the guest the whole stack; it is due before each call of one
// of its functions.
func (t *tank) enterFrame() {
	if t.stack != nil {
		t.stack.Set(uint64(t.maxStack)) //nolint:gosec // not negative
	}
}

// refill is the function that metered code calls where its fuel or its stack
// has run out. A panic ends the guest's call.
func refill(ctx context.Context, mod api.Module, _ []uint64) {
	in := ctx.Value(instanceKey{}).(*instance)
	if in.tank.fuel == nil { // start code runs
		in.tank.bind(mod)
	}
	if int64(in.tank.stack.Get()) < 0 { //nolint:gosec // the bits of an i64
		panic(in.gen.limitError(abi.LimitStack, ErrStack.Error(), ErrStack))
	}
	if err := in.nextSlice(); err != nil {
		panic(err)
	}
}

// nextSlice grants one more slice of fuel, once it is this instance's turn, or
// says why not.
func (in *instance) nextSlice() error {
	t := &in.tank
	if used := t.spent(); t.limit > 0 && used > t.limit {
		return in.gen.limitError(abi.LimitFuel, fmt.Sprintf("%v: %d used", ErrFuel, used), ErrFuel)
	}
	now := time.Now()
	if !now.Before(in.run.deadline) { // the timer may be late
		in.interrupt.fire(byDeadline)
	}
	if t.slices > 0 {
		t.pace.learn(now.Sub(t.since))
		if !in.pay() || !in.takeTurn() {
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
	t, rate := &in.tank, in.gen.cfg.FuelRate
	if rate == 0 {
		return true
	}
	spent := t.spent()
	wait := in.gen.shared.rate.charge(time.Now(), rate, spent-t.paid)
	t.paid = spent
	if wait <= 0 {
		return true
	}
	in.giveTurn()
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

// takeTurn waits for the instance's turn, where guests share the processors. It
// reports false where the call is over before.
func (in *instance) takeTurn() bool {
	shares := in.gen.cfg.Shares
	if shares == nil || in.tank.slices < freeSlices {
		shares.yield(&in.tank.others)
		return true
	}
	defer in.waiting(time.Now())
	if in.tank.turn = shares.take(in.gen.shared, in.tank.turn, in.interrupt.done); in.tank.turn {
		shares.yield(&in.tank.others)
	}
	return in.tank.turn
}

// waiting counts the time since began as time in which the guest could do
// nothing.
func (in *instance) waiting(began time.Time) { in.run.waited += time.Since(began) }

// giveTurn ends the instance's turn, if it has one.
func (in *instance) giveTurn() {
	if in.tank.turn {
		in.tank.turn = false
		in.gen.cfg.Shares.give()
	}
}

// aside runs f, which waits for something else than a processor, without the
// instance's turn.
func (in *instance) aside(f func()) {
	had := in.tank.turn
	in.giveTurn()
	f()
	if had {
		in.takeTurn()
	}
}

// settle ends the accounts of an entry call. What it has used over the module's
// rate is waited for by the next one.
func (in *instance) settle() {
	in.giveTurn()
	t := &in.tank
	in.spent = t.spent()
	in.gen.shared.fuel.Add(uint64(max(0, in.spent))) //nolint:gosec // not negative
	if rate := in.gen.cfg.FuelRate; rate > 0 {
		in.gen.shared.rate.charge(time.Now(), rate, in.spent-t.paid)
	}
}

// traced is reason with the guest's stack trace that wazero put into err.
func traced(reason, err error) error {
	if err == nil {
		return reason
	}
	_, trace, ok := strings.Cut(err.Error(), "\nwasm stack trace:")
	if !ok {
		return reason
	}
	trace = strings.Replace(trace, "\n\t"+meter.ImportModule+"."+meter.RefillFunc+"()", "", 1)
	return fmt.Errorf("%w\nwasm stack trace:%s", reason, trace)
}
