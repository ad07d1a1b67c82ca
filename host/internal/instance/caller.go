// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

// caller is a context whose end interrupts the calls of an instance. All runs of a
// controller end with the same context, and to register with it takes a tenth of the time
// of an empty call, so an instance stays registered from one run to the next.
type caller struct {
	done    <-chan struct{} // of the context
	calling atomic.Bool     // a call is under way: only then it is interrupted
	leave   func() bool
}

// callBegins has the end of ctx interrupt the call that begins, until callEnds. If ctx has
// ended before, nothing may interrupt the call: ask ctx.Err afterwards.
func (in *Instance) callBegins(ctx context.Context) {
	if run, ok := ctx.(*abi.RunContext); ok {
		ctx = run.Context // the registration must not keep the run in memory
	}
	if c := in.caller; c == nil || c.done != ctx.Done() {
		in.leaveCaller()
		if ctx.Done() == nil {
			return
		}
		c = &caller{done: ctx.Done()}
		c.leave = context.AfterFunc(ctx, func() {
			if c.calling.Load() {
				in.fire(byCaller)
			}
		})
		in.caller = c
	}
	in.caller.calling.Store(true)
}

// callEnds ends callBegins. Without a run, the registration ends too.
func (in *Instance) callEnds(ctx context.Context) {
	if in.caller == nil {
		return
	}
	in.caller.calling.Store(false)
	if _, ok := ctx.(*abi.RunContext); !ok {
		in.leaveCaller()
	}
}

// leaveCaller ends the registration with a context.
func (in *Instance) leaveCaller() {
	if in.caller != nil {
		in.caller.leave()
		in.caller = nil
	}
}

// Registered reports whether the instance is registered with the end of a caller.
func (in *Instance) Registered() bool { return in.caller != nil }
