// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"context"
	"errors"
)

// ErrNoErrorPolicy is returned by Guest.ErrorPolicy if the module does not export error_policy. The host's back-off then decides.
var ErrNoErrorPolicy = errors.New("module does not export " + ExportErrorPolicy)

// ErrBuffer matches errors of calls for which the guest's buffer export returned
// no usable block of memory.
var ErrBuffer = errors.New(ExportBuffer)

// Guest is a guest of one revision, acquired for one reconcile. It is not safe for concurrent use.
//
// An error is a *CallError if the guest trapped, exceeded its time or memory, or returned something unreadable; any other error is a fault
// of the host or the end of ctx. An error that the guest itself reports is in Result.Error.
type Guest interface {
	// Revision is the number of the guest's module revision, counted from 1.
	Revision() uint64
	// Fuel is the amount of work that this guest has done since it was acquired, including error_policy, in the unit of docs/metering.md; 0
	// if it is not metered.
	Fuel() int64
	// Reconcile runs one reconcile. The caller sets ID, Controller, Reason, Attempt, Key, Object and Stale of the request; the guest's host
	// sets the other fields.
	Reconcile(ctx context.Context, req *Request) (Result, error)
	// Finalize is like Reconcile, for an object that is being deleted and has the module's finalizer. It is called only if the module
	// exports it.
	Finalize(ctx context.Context, req *Request) (Result, error)
	// ErrorPolicy asks what to do after a failed run. After a trap or a timeout, it runs on a fresh instance of the same revision. It
	// returns ErrNoErrorPolicy if the module has none.
	ErrorPolicy(ctx context.Context, f *Failure) (Result, error)
}
