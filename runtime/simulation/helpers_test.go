package simulation

import (
	"context"

	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// endedFunc observes the ends of runs alone.
type endedFunc func(*applier.Outcome)

func (endedFunc) Started(*applier.Started)     {}
func (endedFunc) Returned(string)              {}
func (f endedFunc) Ended(out *applier.Outcome) { f(out) }

// channel emits what a test sends.
type channel <-chan trigger.Trigger

func (c channel) Run(ctx context.Context, emit trigger.Emit) error {
	for {
		select {
		case t := <-c:
			emit(ctx, t)
		case <-ctx.Done():
			return nil
		}
	}
}

func (c channel) String() string { return "channel" }
