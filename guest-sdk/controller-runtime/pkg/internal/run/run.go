// SPDX-License-Identifier: Apache-2.0

// Package run tracks the current call of the module.
package run

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// now is the current call. A module handles one call at a time, and the context
// of Reconcile may not reach the client.
var now atomic.Pointer[wasmctl.Context]

type key struct{}

// moreGarbage raises the garbage limit above Go's default of 100 %. An operator
// has some megabytes of live memory, and scanning them takes as long as several
// runs. The first call of the host does this: if main did it, its garbage would
// be in all instances.
var moreGarbage = sync.OnceFunc(func() { debug.SetGCPercent(200) })

// Enter starts a call. The returned context ends with the call, and a little
// before the host interrupts the call: a program that waits then returns its
// own error, which tells more than that the run took too long.
func Enter(ctx context.Context, c *wasmctl.Context) (context.Context, func()) {
	moreGarbage()
	now.Store(c)
	hostlog.Current = lines{c.Log()}
	ctx = context.WithValue(ctx, key{}, c)
	ctx, cancel := context.WithCancel(ctx)
	if at, ok := c.Deadline(); ok {
		ctx = &until{call: ctx, at: at}
	}
	return ctx, func() {
		cancel()
		now.CompareAndSwap(c, nil)
		hostlog.Current = nil
	}
}

// until is a context with a deadline. It reads the clock only if the program
// waits for the context or asks for its deadline: the host never skips a run
// that has read the clock.
type until struct {
	call  context.Context // ends with the call
	at    time.Time       // when the host interrupts the call
	once  sync.Once       // starts timed
	timed atomic.Pointer[context.Context]
}

// start returns the context with a timer, which ends with call at the latest.
func (u *until) start() context.Context {
	u.once.Do(func() {
		timed, cancel := context.WithDeadline(u.call, before(u.at, time.Now()))
		context.AfterFunc(u.call, cancel)
		u.timed.Store(&timed)
	})
	return *u.timed.Load()
}

// current returns the context with a timer, if it has been started.
func (u *until) current() context.Context {
	if timed := u.timed.Load(); timed != nil {
		return *timed
	}
	return u.call
}

// Deadline implements context.Context.
func (u *until) Deadline() (time.Time, bool) { return u.start().Deadline() }

// Done implements context.Context.
func (u *until) Done() <-chan struct{} { return u.start().Done() }

// Err implements context.Context.
func (u *until) Err() error { return u.current().Err() }

// Value implements context.Context.
func (u *until) Value(key any) any { return u.current().Value(key) }

// before returns the deadline of a context in a call that is interrupted at at:
// a tenth of the time after start earlier, but at most a second.
func before(at, start time.Time) time.Time {
	return at.Add(-min(at.Sub(start)/10, time.Second))
}

// calls counts the calls of Current.
var calls atomic.Uint64

// Calls returns a number that changes when the program calls the host.
func Calls() uint64 { return calls.Load() }

// Current returns the call that ctx belongs to, otherwise the current call of
// the module, or nil between calls.
func Current(ctx context.Context) *wasmctl.Context {
	calls.Add(1)
	if c, ok := ctx.Value(key{}).(*wasmctl.Context); ok {
		return c
	}
	return now.Load()
}

// lines is the log of a call, for package hostlog.
type lines struct{ log *wasmctl.Logger }

// Enabled implements hostlog.Host.
func (l lines) Enabled(level hostlog.Level) bool { return l.log.Enabled(wasmctl.Level(level)) } //nolint:gosec // the numbers of log/slog

// Log implements hostlog.Host.
func (l lines) Log(level hostlog.Level, msg string, attrs []any) {
	switch {
	case level >= hostlog.Error:
		l.log.Error(msg, attrs...)
	case level >= hostlog.Info:
		l.log.Info(msg, attrs...)
	default:
		l.log.Debug(msg, attrs...)
	}
}
