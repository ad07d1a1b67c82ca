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

// Config configures the charges. The zero value is the default.
type Config struct {
	Costs Costs
	// MaxStack is the maximum size of the frames of nested calls, in bytes, by the estimate of
	// docs/metering.md. If zero, it is DefaultMaxStack.
	MaxStack int64
	// Slack is the amount that a point of charge may charge in advance for code that may not run.
	// Less slack counts more precisely and costs more. If zero, it is DefaultSlack. A negative
	// number means none.
	Slack int
}

// Defaults of Config.
const (
	DefaultMaxStack = 4 << 20
	DefaultSlack    = 12
)

// Costs are the charges for instructions, in units of fuel. A zero field means the default.
type Costs struct {
	Instruction  uint32 // an instruction that computes, loads or stores; 1
	Divide       uint32 // integer division and remainder, float division and square root; 4
	Call         uint32 // a call, without what the callee is charged; 3
	CallIndirect uint32 // a call through a table; 8
	HostCall     uint32 // a call of an imported function; 40
	Grow         uint32 // memory.grow and table.grow; 100
	Bulk         uint32 // bulk instructions, which pay 1 more for each 16 bytes or 2 table entries; 10
}

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
	// Dropped are the names of custom sections that were omitted because they have invalid code
	// offsets: mostly debug information.
	Dropped []string
}

// maxCost limits each cost and the charge of one point, so that no sum overflows.
const maxCost = 1 << 20

// withDefaults sets the defaults of zero fields.
func (c Config) withDefaults() Config {
	k := &c.Costs
	k.Instruction = cmp.Or(k.Instruction, 1)
	k.Divide = cmp.Or(k.Divide, 4)
	k.Call = cmp.Or(k.Call, 3)
	k.CallIndirect = cmp.Or(k.CallIndirect, 8)
	k.HostCall = cmp.Or(k.HostCall, 40)
	k.Grow = cmp.Or(k.Grow, 100)
	k.Bulk = cmp.Or(k.Bulk, 10)
	c.MaxStack = cmp.Or(c.MaxStack, DefaultMaxStack)
	c.Slack = max(0, cmp.Or(c.Slack, DefaultSlack))
	return c
}

func (c Config) validate() error {
	k := c.Costs
	for _, v := range []uint32{k.Instruction, k.Divide, k.Call, k.CallIndirect, k.HostCall, k.Grow, k.Bulk} {
		if v > maxCost {
			return fmt.Errorf("meter: cost of %d is above %d", v, maxCost)
		}
	}
	if c.MaxStack < 0 || c.MaxStack > math.MaxInt32 {
		return fmt.Errorf("meter: stack of %d bytes is not between 1 and %d", c.MaxStack, math.MaxInt32)
	}
	if c.Slack > maxCost {
		return fmt.Errorf("meter: slack of %d is above %d", c.Slack, maxCost)
	}
	return nil
}

// Rewrite returns the metered form of a core module. The same module and Config give the same
// bytes. wasm is neither changed nor retained. A module with unknown features is refused, with
// *UnknownOpcodeError for an instruction. Rewrite does not validate: invalid WebAssembly is refused
// here or by the compiler of the output.
func Rewrite(wasm []byte, cfg Config) (*Output, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	m, err := parse(wasm)
	if err != nil {
		return nil, inMeter(err)
	}
	if err := m.survey(&cfg); err != nil {
		return nil, inMeter(err)
	}
	out, dropped, err := m.rewrite(&cfg)
	if err != nil {
		return nil, inMeter(err)
	}
	return &Output{Wasm: out, MaxStack: cfg.MaxStack, Work: m.work, Globals: m.exported(), Segments: m.segments, Dropped: dropped}, nil
}
