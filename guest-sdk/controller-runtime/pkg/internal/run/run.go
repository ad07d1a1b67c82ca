// Package run knows the call of the host that the module carries out now.
package run

import (
	"context"
	"sync/atomic"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// now is the current call. A module carries out one at a time, and Reconcile may
// have lost its context on the way to the client.
var now atomic.Pointer[wasmctl.Context]

type key struct{}

// Enter begins a call. The returned context ends with it. It knows when the host
// interrupts the call, and has no timer of its own for that: it would never be first.
func Enter(ctx context.Context, c *wasmctl.Context) (context.Context, func()) {
	now.Store(c)
	hostlog.Current = lines{c.Log()}
	ctx = context.WithValue(ctx, key{}, c)
	ctx, cancel := context.WithCancel(ctx)
	if at, ok := c.Deadline(); ok {
		ctx = until{ctx, at}
	}
	return ctx, func() {
		cancel()
		now.CompareAndSwap(c, nil)
		hostlog.Current = nil
	}
}

// until is a context whose deadline somebody else looks after.
type until struct {
	context.Context

	at time.Time
}

// Deadline implements context.Context.
func (u until) Deadline() (time.Time, bool) { return u.at, true }

// Current returns the call that ctx belongs to, else the one that the module
// carries out now, or nil between calls.
func Current(ctx context.Context) *wasmctl.Context {
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
