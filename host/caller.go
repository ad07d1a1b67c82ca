package host

import (
	"context"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

// caller is a context whose end interrupts the calls of an instance. All runs of a
// controller end with the same one, and to register with that costs a tenth of a call
// that does nothing: an instance stays registered from one run to the next.
type caller struct {
	done    <-chan struct{} // the context's
	calling atomic.Bool     // a call is under way: only that is interrupted
	leave   func() bool
}

// callBegins has the end of ctx interrupt the call that begins, which callEnds ends. If
// ctx has ended before, nothing may interrupt the call: ask ctx.Err afterwards.
func (in *instance) callBegins(ctx context.Context) {
	if run, ok := ctx.(*abi.RunContext); ok {
		ctx = run.Context // what is kept must not keep the run
	}
	if c := in.caller; c == nil || c.done != ctx.Done() {
		in.leaveCaller()
		if ctx.Done() == nil {
			return
		}
		c = &caller{done: ctx.Done()}
		c.leave = context.AfterFunc(ctx, func() {
			if c.calling.Load() {
				in.interrupt.fire(byCaller)
			}
		})
		in.caller = c
	}
	in.caller.calling.Store(true)
}

// callEnds ends that. Where the call was no run, nothing of ctx is kept.
func (in *instance) callEnds(ctx context.Context) {
	if in.caller == nil {
		return
	}
	in.caller.calling.Store(false)
	if _, ok := ctx.(*abi.RunContext); !ok {
		in.leaveCaller()
	}
}

// leaveCaller gives up what is kept from one call to the next.
func (in *instance) leaveCaller() {
	if in.caller != nil {
		in.caller.leave()
		in.caller = nil
	}
}
