// SPDX-License-Identifier: Apache-2.0

// Package run tracks the current call of the module.
package run

import (
	"context"
	"sync/atomic"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// now is the current call. A module handles one call at a time, and the context
// of Reconcile may not reach the client.
var now atomic.Pointer[wasmctl.Context]

type key struct{}

// Enter starts a call. The returned context ends with the call. It has the
// deadline at which the host interrupts the call, but no timer, which could
// never fire before that.
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

// until is a context with a deadline that the host enforces.
type until struct {
	context.Context

	at time.Time
}

// Deadline implements context.Context.
func (u until) Deadline() (time.Time, bool) { return u.at, true }

// Current returns the call that ctx belongs to, otherwise the current call of
// the module, or nil between calls.
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
