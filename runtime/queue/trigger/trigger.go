// Package trigger has what asks for reconciles besides watches: a period, a
// schedule, a signal, lines of text, a channel.
//
// A Source that ends just stops; the others go on (as kube-rs's reconcile_on and
// reconcile_all_on do).
package trigger

import (
	"context"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Trigger asks for objects to be reconciled although nothing about them has
// changed.
type Trigger struct {
	// All asks for every object in the store of the reconciled kind.
	All bool
	// Refs asks for these, also where the store does not have them.
	Refs []reflector.ObjectRef
	// Reason is told to the guest; the zero value is Triggered.
	Reason abi.Reason
	// Low says that it is not urgent (rule 4).
	Low bool
}

// Requests appends the requests that a trigger makes to dst and returns it. The
// store is that of the reconciled kind. An object that is both named and in the
// store is requested twice; the scheduler makes it one run (rule 2).
func (t Trigger) Requests(dst []queue.Request, store *reflector.Store) []queue.Request {
	if t.Reason == (abi.Reason{}) {
		t.Reason.Type = abi.ReasonTriggered
	}
	for _, ref := range t.Refs {
		dst = append(dst, queue.Request{Ref: ref, Reason: t.Reason, Low: t.Low})
	}
	if !t.All {
		return dst
	}
	objects := store.List()
	dst = slices.Grow(dst, len(objects))
	for _, o := range objects {
		dst = append(dst, queue.Request{Ref: o.Ref(), Reason: t.Reason, Low: t.Low})
	}
	return dst
}

// Emit takes a trigger. It may block until ctx ends at the latest.
type Emit func(ctx context.Context, t Trigger)

// Source emits triggers.
type Source interface {
	// Run emits until ctx ends, or nothing more is to come, and returns when
	// everything that it started has ended. The error says why it ended early.
	Run(ctx context.Context, emit Emit) error
	// String names it for people: "cron 0 3 * * *".
	String() string
}

var (
	_ Source = Resync{}
	_ Source = Cron{}
	_ Source = Lines{}
	_ Source = Chan{}
)
