// SPDX-License-Identifier: Apache-2.0

// Package meter rewrites a WebAssembly module so that it counts its own work.
//
// wazero has no fuel. Rewrite adds a counter that the module charges as it runs, and a call to an
// imported function that it makes when the counter is exhausted. There the host checks deadline and
// budget, and either refills the counter or ends the call. Rewrite adds a second counter for the
// stack, so that recursion ends before it uses up the host's memory.
//
//	out, err := meter.Rewrite(wasm, meter.Config{})
//
// The metered module needs a host module with the name ImportModule and the function RefillFunc, ()
// -> (). It exports two mutable i64 globals. The host sets StackGlobal to Output.MaxStack before
// each call into the module. If StackGlobal is negative when RefillFunc is called, the stack is
// exhausted and the host must end the call. Otherwise FuelGlobal is negative, and the host ends the
// call or adds the fuel of a slice: the amount below zero was already used.
//
// Rewrite is a pure function of its arguments. docs/metering.md describes the charges and their
// cost.
package meter

import (
	"cmp"
	"fmt"
	"math"
)

// Names that a metered module imports and exports. A module that already has them is refused.
const (
	// ImportModule is the module that a metered module imports RefillFunc from.
	ImportModule = "wasmctl_meter"
	// RefillFunc is the function, () -> (), that a metered module calls when
	// FuelGlobal or StackGlobal is negative.
	RefillFunc = "refill"
	// FuelGlobal is the exported mutable i64 with the remaining fuel. It is 0 in a new instance, so
	// RefillFunc is called before any code runs.
	FuelGlobal = "wasmctl_fuel"
	// StackGlobal is the exported mutable i64 with the remaining stack in bytes. It is
	// Output.MaxStack in a new instance, and undefined after a call: the host sets it before the
	// next one.
	StackGlobal = "wasmctl_stack"
	// GlobalPrefix is the start of the export names of the module's own mutable globals. A number
	// from 0 on follows. See Output.Globals.
	GlobalPrefix = "wasmctl_global_"
)

// DefaultMaxStack is the default of Config.MaxStack.
const DefaultMaxStack = 4 << 20

// Config configures the metered module.
type Config struct {
	// MaxStack is the maximum size of the frames of nested calls, in bytes, by the estimate of
	// docs/metering.md. If zero, it is DefaultMaxStack.
	MaxStack int64
	// Exact makes the total charge the exact sum of the executed instructions, for tests. By
	// default, a point of charge may charge up to slack in advance for code that may not run, which
	// costs less time.
	Exact bool
}

// slack is the charge in advance without Config.Exact.
const slack = 12

// The charges for instructions, in units of fuel.
const (
	costPlain    = 1   // an instruction that computes, loads or stores
	costDivide   = 4   // integer division and remainder, float division and square root
	costCall     = 3   // a call, without what the callee is charged
	costIndirect = 8   // a call through a table
	costHost     = 40  // a call of an imported function
	costGrow     = 100 // memory.grow and table.grow
	costBulk     = 10  // bulk instructions, which pay 1 more for each 16 bytes or 2 table entries
)

// Output is a metered module.
type Output struct {
	Wasm []byte
	// MaxStack is the value of StackGlobal before a call, in bytes.
	MaxStack int64
	// Work estimates the work of compiling the module, in instructions of simple code. A few bytes
	// can be much work, because locals, signatures and branches multiply.
	Work int64
	// Globals is the number of globals that are exported with GlobalPrefix, if running the module
	// can change only these and the memory. Otherwise it is -1: tables change, segments are
	// dropped, or the host cannot set some global's type.
	Globals int
	// Segments reports whether the code copies or drops data segments.
	Segments bool
}

// Rewrite returns the metered form of a core module, without its custom sections other than the
// names of functions. The same module and Config give the same bytes. wasm is neither changed nor retained. A module with unknown features is refused, with
// *UnknownOpcodeError for an instruction. Rewrite does not validate: invalid WebAssembly is refused
// here or by the compiler of the output.
func Rewrite(wasm []byte, cfg Config) (*Output, error) {
	maxStack := cmp.Or(cfg.MaxStack, DefaultMaxStack)
	if maxStack < 0 || maxStack > math.MaxInt32 {
		return nil, fmt.Errorf("meter: stack of %d bytes is not between 1 and %d", maxStack, math.MaxInt32)
	}
	m, err := parse(wasm)
	if err != nil {
		return nil, inMeter(err)
	}
	if !cfg.Exact {
		m.slack = slack
	}
	if err := m.survey(); err != nil {
		return nil, inMeter(err)
	}
	out, err := m.rewrite(maxStack)
	if err != nil {
		return nil, inMeter(err)
	}
	return &Output{Wasm: out, MaxStack: maxStack, Work: m.work, Globals: m.exported(), Segments: m.segments}, nil
}
