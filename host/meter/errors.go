// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"fmt"
)

// UnknownOpcodeError is the error about a module with an instruction that Rewrite does not know, so
// that neither its cost nor its end is known.
type UnknownOpcodeError struct {
	// Name is the instruction's name, if it belongs to a known proposal.
	Name string
	// Prefix is the first byte of a two-part opcode, or 0.
	Prefix byte
	// Opcode is the instruction's number, after the prefix.
	Opcode uint32
	// Func is the index of the function in the module, or -1 in a constant
	// expression.
	Func int
	// Offset is the position of the opcode, in bytes from the start of the module.
	Offset int
}

// Error implements error.
func (e *UnknownOpcodeError) Error() string {
	code := fmt.Sprintf("%#02x", e.Opcode)
	if e.Prefix != 0 {
		code = fmt.Sprintf("%#02x %#02x", e.Prefix, e.Opcode)
	}
	what := "unknown instruction " + code
	if e.Name != "" {
		what = fmt.Sprintf("instruction %s (%s)", e.Name, code)
	}
	where := "constant expression"
	if e.Func >= 0 {
		where = fmt.Sprintf("function %d", e.Func)
	}
	return fmt.Sprintf("meter: %s in %s at byte %#x is not supported: build the module without it", what, where, e.Offset)
}

// inMeter marks an error as one of this package.
func inMeter(err error) error {
	if unknown, ok := errors.AsType[*UnknownOpcodeError](err); ok {
		return unknown
	}
	return fmt.Errorf("meter: %w", err)
}
