// SPDX-License-Identifier: Apache-2.0

package host

import "errors"

var (
	// ErrSameModule is returned by Prepare for the bytes that are already live.
	ErrSameModule = errors.New("this module is already live")
	// ErrNotKept is returned by PrepareKept for a revision whose code was closed, or if there is none.
	ErrNotKept = errors.New("revision to go back to")
	// ErrClosed is returned by Acquire after Close.
	ErrClosed = errors.New("module is closed")
	// ErrNoHook is returned by the method of an optional export that the module does not
	// have.
	ErrNoHook = errors.New("not exported by the module")
)

// StartError is the error of Acquire if a new instance was needed and could not be made,
// which is the fault of that revision.
type StartError struct {
	Number uint64
	Err    error
}

// Error implements error.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// Revision returns the number of the revision.
func (e *StartError) Revision() uint64 { return e.Number }
