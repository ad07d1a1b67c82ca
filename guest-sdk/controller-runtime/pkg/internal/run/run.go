// Package run knows the call of the host that the module carries out now.
package run

import (
	"context"
	"sync/atomic"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// now is the current call. A module carries out one at a time, and Reconcile may
// have lost its context on the way to the client.
var now atomic.Pointer[wasmctl.Context]

type key struct{}

// Enter begins a call. The returned context ends with it, at the latest when the
// host would interrupt it.
func Enter(ctx context.Context, c *wasmctl.Context) (context.Context, func()) {
	now.Store(c)
	ctx = context.WithValue(ctx, key{}, c)
	cancel := context.CancelFunc(func() {})
	if at, ok := c.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, at)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	return ctx, func() {
		cancel()
		now.CompareAndSwap(c, nil)
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
