package abi

import (
	"context"
	"errors"
)

// ErrNoErrorPolicy is returned by Guest.ErrorPolicy where the module does not
// export error_policy: the host's back-off decides.
var ErrNoErrorPolicy = errors.New("module does not export " + ExportErrorPolicy)

// ErrBuffer matches errors of calls for which the guest's buffer export returned
// no usable block of memory.
var ErrBuffer = errors.New(ExportBuffer)

// Guest is one guest of one revision, acquired for one reconcile. It is used
// by one goroutine at a time.
//
// An error is a *CallError where the guest trapped, ran out of time or memory,
// or returned something that cannot be read; anything else is a fault of the
// host or the end of ctx. An error that the guest itself reports is in
// Result.Error.
type Guest interface {
	// Revision is the number of the module revision that this guest
	// belongs to, counted from 1.
	Revision() uint64
	// Fuel is the work that this guest has done since it was acquired,
	// error_policy included, in the unit of docs/metering.md; 0 where it is not
	// counted.
	Fuel() int64
	// Reconcile runs one reconcile. The caller sets ID, Controller, Reason,
	// Attempt, Key, Object and Stale of the request; the guest's host fills in
	// the rest.
	Reconcile(ctx context.Context, req *Request) (Result, error)
	// Finalize is Reconcile for an object that is being deleted and has the
	// module's finalizer. It is called only where the module exports it.
	Finalize(ctx context.Context, req *Request) (Result, error)
	// ErrorPolicy asks what to do after a failed run. After a trap or a
	// timeout it runs on a fresh instance of the same revision. It returns
	// ErrNoErrorPolicy where the module has none.
	ErrorPolicy(ctx context.Context, f *Failure) (Result, error)
}
