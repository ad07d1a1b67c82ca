// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"sync/atomic"
	"time"
)

// Interrupt is the context that wazero watches while a guest runs. Contexts of the standard
// library would have to be made for each call. An instance that was interrupted is never
// used again, so one Interrupt serves all its calls.
type Interrupt struct {
	done  chan struct{}
	cause atomic.Int32 // notInterrupted, and then at most one other value
	// operation ends the operation that runs; nil if none does.
	operation atomic.Pointer[context.CancelFunc]
}

const (
	notInterrupted = int32(iota)
	byDeadline
	byCaller
	byReplaced // the revision's time to drain is over
	byBudget   // other tenants need the memory
)

// fire interrupts, and reports whether it was the first to do so.
func (i *Interrupt) fire(cause int32) bool {
	if !i.cause.CompareAndSwap(notInterrupted, cause) {
		return false
	}
	close(i.done)
	if cancel := i.operation.Load(); cancel != nil {
		(*cancel)()
	}
	return true
}

// OnOperation has cancel called when the call is interrupted; nil ends that. It reports
// whether the call was interrupted before.
func (i *Interrupt) OnOperation(cancel *context.CancelFunc) (interrupted bool) {
	i.operation.Store(cancel)
	return i.Err() != nil
}

// Deadline implements context.Context. A timer enforces the deadline.
func (i *Interrupt) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (i *Interrupt) Done() <-chan struct{} { return i.done }

// Err implements context.Context.
func (i *Interrupt) Err() error {
	switch i.cause.Load() {
	case byDeadline:
		return context.DeadlineExceeded
	case byCaller, byReplaced, byBudget:
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (i *Interrupt) Value(any) any { return nil }
