// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
)

// Chan emits a trigger for each value that a program sends, like kube-rs's reconcile_on and reconcile_all_on, and controller-runtime's
// source.Channel: a Trigger is emitted as it is, an abi.Key requests that object, and any other value requests all objects. A sender blocks
// until its value is received; it should give up when the controller's context ends.
type Chan[T any] struct {
	// Name is a human-readable name.
	Name string
	// C carries the values. Closing it ends the Chan; a nil channel never sends.
	C <-chan T
}

// Run implements Source.
func (c Chan[T]) Run(ctx context.Context, emit Emit) error {
	for {
		select {
		case v, more := <-c.C:
			if !more {
				return nil
			}
			emit(ctx, triggerOf(v))
		case <-ctx.Done():
			return nil
		}
	}
}

func triggerOf(v any) Trigger {
	switch v := v.(type) {
	case Trigger:
		return v
	case abi.Key:
		return Trigger{Refs: []abi.Key{v}}
	default:
		return Trigger{All: true}
	}
}

// String implements Source.
func (c Chan[T]) String() string { return "channel " + c.Name }
