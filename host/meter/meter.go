// Package meter rewrites a WebAssembly module so that it counts its own work.
//
// wazero has no fuel. Rewrite adds a counter, which the module charges as it
// runs, and a call to an imported function, which it makes when the counter has
// run out: there the host checks deadline and budget, and either refills the
// counter or ends the call. It adds a second counter for the stack, so that
// recursion ends before it takes the host's memory.
//
//	out, err := meter.Rewrite(wasm, meter.Config{})
//
// The metered module needs a host module of the name ImportModule with the
// function RefillFunc, () -> (). It exports two mutable i64 globals. The host
// sets StackGlobal to Output.MaxStack before each call into the module. When
// RefillFunc is called and StackGlobal is negative, the stack is used up and the
// host must end the call. Else FuelGlobal is negative, and the host ends the
// call or adds the fuel of a slice: what is below zero has been used already.
//
// Rewrite is a pure function of its arguments. docs/metering.md says what is
// charged and what that costs.
package meter

import (
	"cmp"
	"fmt"
	"math"
)

// Names that a metered module imports and exports. A module that has them
// already is refused.
const (
	// ImportModule is the module that a metered module imports RefillFunc from.
	ImportModule = "wasmctl_meter"
	// RefillFunc is the function, () -> (), that a metered module calls when
	// FuelGlobal or StackGlobal is negative.
	RefillFunc = "refill"
	// FuelGlobal is the exported mutable i64 that holds the fuel left. It is 0
	// in a new instance, so RefillFunc is called before anything runs.
	FuelGlobal = "wasmctl_fuel"
	// StackGlobal is the exported mutable i64 that holds the bytes of stack
	// left. It is Output.MaxStack in a new instance, and undefined after a
	// call: the host sets it before the next one.
	StackGlobal = "wasmctl_stack"
	// GlobalPrefix begins the names of the module's own mutable globals, which are
	// exported as well: behind it is a number from 0 on. See Output.Globals.
	GlobalPrefix = "wasmctl_global_"
)

// Config says what is charged. The zero value is the default.
type Config struct {
	Costs Costs
	// MaxStack is how many bytes the frames of nested calls may take together,
	// by the estimate that docs/metering.md describes. Zero means
	// DefaultMaxStack.
	MaxStack int64
	// Slack is how much a point of charge may charge in advance for code that
	// may not run. Less slack counts more exactly and costs more. Zero means
	// DefaultSlack, a negative number none at all.
	Slack int
}

// Defaults of Config.
const (
	DefaultMaxStack = 4 << 20
	DefaultSlack    = 12
)

// Costs are what instructions are charged, in units of fuel. Zero means the
// default.
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
	// MaxStack is what StackGlobal is set to before a call, in bytes.
	MaxStack int64
	// Work estimates what compiling the module takes, in instructions of simple
	// code. Few bytes may be much work: locals, signatures and branches multiply.
	Work int64
	// Globals is how many globals are exported by GlobalPrefix, where they and the
	// memory are all that running the module can change. Else it is -1: tables change,
	// segments are dropped, or there are globals of types that the host cannot set.
	Globals int
	// Segments says that the code uses data segments: it copies from them or drops them.
	Segments bool
	// Dropped are the names of custom sections left out because they hold code
	// offsets, which no longer fit: debug information, mostly.
	Dropped []string
}

// maxCost bounds each cost and the charge of one point, so that no sum
// overflows.
const maxCost = 1 << 20

// withDefaults fills in what is zero.
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

// Rewrite returns the metered form of a core module. The same module and
// Config give the same bytes. wasm is neither changed nor kept. A module that
// uses what Rewrite does not know is refused: with *UnknownOpcodeError where it
// is an instruction. Rewrite does not validate: what is not valid WebAssembly
// is refused here or by who compiles the output.
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
