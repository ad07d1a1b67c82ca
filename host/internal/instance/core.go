// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// errInterrupted is the error of a call that was interrupted. Interrupt has the cause.
var errInterrupted = errors.New("interrupted")

// Core bounds the calls of one guest in time and fuel, and counts them. It belongs to the
// goroutine that runs the guest; only fire may be called by others.
type Core struct {
	Spec *Spec
	Run  operation.Run
	// Spent is the fuel that the last call used.
	Spent int64

	guest     Guest
	interrupt Interrupt
	timer     *time.Timer // interrupts the call when its time is over
	fuel      fuelBudget
	work      hostWork
	time      computing
}

// Guest runs the code of one instance, in this process or in another.
type Guest interface {
	operation.Worker

	// Open reserves what the guest needs before any of its code runs.
	Open(ctx context.Context) error
	// Start makes the guest: its start code runs.
	Start() error
	// Call calls an entry with a message, and returns its value.
	Call(e Entry, m Message) (uint64, error)
	// Result returns the block to which a value of Call points. It holds until the next
	// call.
	Result(value uint64) ([]byte, error)
	// Ended ends a call that took this long.
	Ended(took time.Duration)
	// Refused returns why the guest was refused memory in this call, or nil.
	Refused() error
	// Size returns the guest's linear memory, in bytes.
	Size() int64
	// Alive reports whether the guest can be called.
	Alive() bool
	// Interrupted is called by any goroutine when a call is interrupted.
	Interrupted()
	// Close returns everything that the guest has.
	Close(ctx context.Context)
}

// Init prepares a core for a guest.
func (c *Core) Init(spec *Spec, guest Guest) {
	c.Spec, c.guest = spec, guest
	c.interrupt.done = make(chan struct{})
	c.fuel.maxStack, c.fuel.sizer = min(spec.Code.MaxStack, spec.Limits.Stack), share.NewSliceSizer(spec.Slice)
	c.timer = time.AfterFunc(math.MaxInt64, func() { c.fire(byDeadline) })
}

// Stop ends the use of the core.
func (c *Core) Stop() { c.timer.Stop() }

// fire interrupts the call that runs.
func (c *Core) fire(cause int32) {
	if c.interrupt.fire(cause) {
		c.guest.Interrupted()
	}
}

// Late interrupts the call because its time is over.
func (c *Core) Late() { c.fire(byDeadline) }

// Cancel interrupts the call because its caller is gone.
func (c *Core) Cancel() { c.fire(byCaller) }

// WasLate reports whether the call was interrupted because its time was over.
func (c *Core) WasLate() bool { return c.interrupt.cause.Load() == byDeadline }

// Interrupt returns the context that ends when a call is interrupted.
func (c *Core) Interrupt() *Interrupt { return &c.interrupt }

// Bounded runs f, which runs the guest, until it ends, its time is over or the instance is
// interrupted.
func (c *Core) Bounded(ctx context.Context, wait time.Duration, now time.Time, f func() error) error {
	r := &c.Run
	r.Parent, r.StartedAt, r.Limit, r.Deadline = ctx, now, wait, now.Add(wait)
	r.Calls, r.Events, r.Waited, r.Sources = 0, 0, 0, 0
	c.time = computing{}
	c.timer.Reset(wait)
	c.fuel.begin(c.Spec.Limits.Fuel, now)
	err := errInterrupted
	mayStart := c.pay() && c.startTurn(now)
	c.time.since = c.time.idle
	if mayStart {
		err = f()
	}
	c.work.name.Store(nil)
	c.settle()
	// A call that passed its deadline in a host function returns without an error, so the
	// deadline counts even without an error.
	if !c.timer.Stop() {
		c.fire(byDeadline)
	}
	return err
}

// Usage is the cost of a call, as a guest process reports it.
type Usage struct {
	Spent       int64 // fuel
	Guest, Idle time.Duration
	Waited      time.Duration
}

// Usage returns the cost of the last call.
func (c *Core) Usage() Usage {
	return Usage{Spent: c.Spent, Guest: c.time.guest, Idle: c.time.idle, Waited: c.Run.Waited}
}

// SetUsage takes over the cost of a call that a guest process reports.
func (c *Core) SetUsage(u Usage) {
	c.fuel.granted = u.Spent
	c.Run.Waited += min(u.Waited, c.Spec.Limits.Timeout)
	c.time.guest, c.time.idle = u.Guest, c.time.idle+u.Idle
}
