// SPDX-License-Identifier: Apache-2.0

// Package trigger provides sources of reconcile requests other than watches: a period, a schedule, lines of text, a channel.
//
// A Source that ends just stops; the others continue (like kube-rs's reconcile_on and reconcile_all_on).
package trigger

import (
	"context"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Trigger requests reconciles of objects although nothing about them has changed.
type Trigger struct {
	// All requests every object in the store of the reconciled kind.
	All bool
	// Refs requests these objects, even if they are not in the store.
	Refs []reflector.ObjectRef
	// Reason is the reason given to the guest; the zero value means Triggered.
	Reason abi.Reason
	// Low means that the trigger is not urgent (rule 4).
	Low bool
}

// Requests appends the requests of a trigger to dst and returns it. The store is that of the reconciled kind. An object that is both named
// and in the store is requested twice; the scheduler merges the two (rule 2).
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

// Emit processes a trigger. It may block until ctx ends.
type Emit func(ctx context.Context, t Trigger)

// Source emits triggers.
type Source interface {
	// Run emits triggers until ctx ends or no more can come, and returns when everything that it started has ended. The error is the reason
	// for ending early.
	Run(ctx context.Context, emit Emit) error
	// String returns a human-readable name, such as "cron 0 3 * * *".
	String() string
}

var (
	_ Source = Resync{}
	_ Source = Cron{}
	_ Source = Lines{}
	_ Source = Chan[Trigger]{}
)
