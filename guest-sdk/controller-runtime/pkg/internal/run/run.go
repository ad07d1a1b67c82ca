// Package run knows the call of the host that the module carries out now.
package run

import (
	"context"
	"sync/atomic"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// now is the current call. A module carries out one at a time, and Reconcile may
// have lost its context on the way to the client.
var now atomic.Pointer[wasmctl.Context]

type key struct{}

// Enter begins a call. The returned context ends with it, at the latest when the
// host would interrupt it.
func Enter(ctx context.Context, c *wasmctl.Context) (context.Context, func()) {
	now.Store(c)
	hostlog.Current = lines{c.Log()}
	ctx = context.WithValue(ctx, key{}, c)
	cancel := context.CancelFunc(func() {})
	if at, ok := c.Deadline(); ok { // by the clock of the host
		ctx, cancel = context.WithTimeout(ctx, at.Sub(c.Now()))
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	return ctx, func() {
		cancel()
		now.CompareAndSwap(c, nil)
		hostlog.Current = nil
	}
}

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
