// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"io"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// Trigger asks for reconciles for another reason than a watch. A controller that restarts
// uses its triggers again. When one has ended, the others continue.
type Trigger struct{ source trigger.Source }

// ReconcileOn reconciles each object whose key is sent, also one that the store does not have.
// A sender waits until the controller runs and receives. Closing the channel ends the trigger.
// If several controllers have the same channel, each key goes to one of them.
func ReconcileOn(keys <-chan abi.Key) Trigger {
	return Trigger{trigger.Chan[abi.Key]{Name: "of keys", C: keys}}
}

// ReconcileAllOn reconciles all objects whenever a value is sent, whatever the value is: the
// channel may also be that of a time.Ticker. Otherwise it is like ReconcileOn.
func ReconcileAllOn[T any](values <-chan T) Trigger {
	return Trigger{trigger.Chan[T]{Name: "for all objects", C: values}}
}

// ReconcileOnLines reconciles the objects that the lines of a text name: "namespace/name",
// "name", or "*" for all objects. Name is the name of the reader in logs, such as "stdin". A
// read that is under way may outlive the controller.
func ReconcileOnLines(name string, r io.Reader) Trigger {
	return Trigger{trigger.Lines{Name: name, Reader: r}}
}

// Source is a trigger of a program's own.
type Source interface {
	// Run calls reconcile with the keys of objects, or with none for all objects, until ctx ends
	// or no more can come, and returns when everything that it started has ended. Reconcile may
	// block until its ctx ends. The error is the reason for ending early, for the log.
	Run(ctx context.Context, reconcile func(ctx context.Context, objects ...abi.Key)) error
	// String returns a name for people.
	String() string
}

// ReconcileOnSource reconciles the objects that a Source asks for.
func ReconcileOnSource(s Source) Trigger { return Trigger{ownSource{s}} }

// ownSource implements trigger.Source.
type ownSource struct{ Source }

// Run implements trigger.Source.
func (s ownSource) Run(ctx context.Context, emit trigger.Emit) error {
	return s.Source.Run(ctx, func(ctx context.Context, objects ...abi.Key) {
		emit(ctx, trigger.Trigger{All: len(objects) == 0, Refs: objects})
	})
}

// sources returns the sources of triggers.
func sources(triggers []Trigger) []trigger.Source {
	var list []trigger.Source
	for _, t := range triggers {
		if t.source != nil { // the zero Trigger does nothing
			list = append(list, t.source)
		}
	}
	return list
}
