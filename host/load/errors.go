// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/internal/text"
)

// ErrInvalidModule matches every error that is the module's own fault: its bytes are not a
// module, break the contract of ABI.md, need something that this host does not have, or
// fail when they are instantiated.
var ErrInvalidModule = errors.New("invalid module")

// ErrUncompiled matches the error of a module that cannot be compiled within the limits, whatever
// its options are. It also matches ErrInvalidModule.
var ErrUncompiled = errors.New("cannot be compiled")

// InvalidError is the error of a module that cannot be loaded. It matches
// ErrInvalidModule.
type InvalidError struct {
	// Name is the module's name.
	Name string
	// Problems holds every reason, each a line for people.
	Problems []string
	// Err is the error of the guest, if its start code failed.
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

// Unwrap returns the error of the guest, or nil.
func (e *InvalidError) Unwrap() error { return e.Err }

// Invalid returns err as the error of a module with this name.
func Invalid(name string, err error) *InvalidError {
	return &InvalidError{Name: name, Problems: ShortProblems([]string{err.Error()}), Err: err}
}

// Bounds of the problems of a module.
const (
	maxProblem  = 2 << 10 // bytes
	maxProblems = 100
)

// ShortProblems makes each problem of a module one line, and bounds them: the error of a
// module with a million unknown imports must not have gigabytes.
func ShortProblems(problems []string) []string {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	for i := range problems {
		problems[i] = text.Ends(lineBreaks.Replace(problems[i]), maxProblem)
	}
	return problems
}

// lineBreaks keeps names of a module from making lines of their own.
var lineBreaks = strings.NewReplacer("\n", `\n`, "\r", `\r`)
