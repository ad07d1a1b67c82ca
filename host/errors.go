package host

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

var (
	// ErrInvalidModule matches every error that is the module's own fault: the
	// bytes are not a module, break the contract of ABI.md, need what this host
	// does not have, or fail when they are instantiated.
	ErrInvalidModule = errors.New("invalid module")
	// ErrSameModule is returned by Prepare for the bytes that are live already.
	ErrSameModule = errors.New("this module is already live")
	// ErrNotKept is returned by PrepareKept for a revision whose code is not
	// there any longer.
	ErrNotKept = errors.New("revision is not kept")
	// ErrClosed is returned by Acquire after Close.
	ErrClosed = errors.New("module is closed")
)

// InvalidError is the error of a module that cannot be loaded. It matches
// ErrInvalidModule.
type InvalidError struct {
	// Name is the module's name.
	Name string
	// Problems holds every reason, each a line for people.
	Problems []string
	// Err is what the guest did, where it was its start code that failed.
	Err error
}

// Error implements error.
func (e *InvalidError) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("module[%s]: %s", e.Name, e.Problems[0])
	}
	return fmt.Sprintf("module[%s]: %d problems:\n  - %s", e.Name, len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

// Is reports whether target is ErrInvalidModule.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalidModule }

// Unwrap returns what the guest did, or nil.
func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(name string, err error) *InvalidError {
	return &InvalidError{Name: name, Problems: shortProblems([]string{err.Error()}), Err: err}
}

// StartError is the error of Acquire where a new instance was needed and could
// not be made: it is that revision's doing.
type StartError struct {
	Number uint64
	Err    error
}

// Error implements error.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *StartError) Unwrap() error { return e.Err }

// Revision returns the number of the revision.
func (e *StartError) Revision() uint64 { return e.Number }

// replacedAfter is when an object whose run was interrupted by a swap is
// retried, by the new revision.
const replacedAfter = 10 * time.Millisecond

// errReplaced is the error of a run whose revision was replaced and has had
// its time to finish.
func errReplaced(number uint64) error {
	return &abi.ResultError{
		Class: abi.ErrorTransient, Reason: "ModuleSwapped", After: replacedAfter,
		Message: fmt.Sprintf("interrupted: drain timeout exceeded; revision %d of the module was replaced", number),
	}
}
