package host

import (
	"context"
	"fmt"
	"math"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/shell"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/meter"
)

// CPU says how the CPU time of guests is bounded.
type CPU string

const (
	// CPUFuel rewrites a module when it is loaded, so that it counts its own work
	// (docs/metering.md). It alone bounds fuel and the depth of recursion, and
	// takes part in Shares.
	CPUFuel CPU = "fuel"
	// CPUClose has wazero look at the clock in each round of each loop, which
	// makes guests several times slower.
	CPUClose CPU = "close"
	// CPUOff bounds nothing. A guest that spins is not stopped by its timeout, and
	// stops the whole process at its next garbage collection: for modules that are
	// trusted, and for measuring.
	CPUOff CPU = "off"
)

// CPUs are all values of CPU, the default first.
var CPUs = []CPU{CPUFuel, CPUClose, CPUOff}

// defaultCPU is what Config.CPU is where it is empty. Tests run with each.
var defaultCPU = CPUFuel

// form sets the bytes that are compiled in the place of a module's own: its tables are
// bounded and, where fuel is counted, it counts, and its data is detached.
func (c compiler) form(code *code, src *source) error {
	wasm, bin := boundTables(src.wasm, src.bin), src.bin
	if c.cfg.Isolation == nil {
		var err error
		if wasm, err = withoutSections(wasm, ownSection); err != nil {
			return err
		}
	}
	if c.cfg.CPU != CPUFuel {
		code.work = math.MaxInt64 // nobody has read the code
		src.form = wasm
		return nil
	}
	out, err := meter.Rewrite(wasm, meter.Config{MaxStack: c.cfg.LimitsFor(code.info.Manifest).Stack})
	if err != nil {
		return fmt.Errorf("cannot be metered: %w", err)
	}
	code.maxStack, code.work, code.globals = out.MaxStack, out.Work, out.Globals
	if bin.start || !bin.exportsFunc(abi.ExportInitialize) { // would run in each instance; nothing runs
		code.globals = -1
	}
	if len(out.Dropped) > 0 {
		c.log.Debug("sections of a module that speak of places in its code are not kept: it is metered", "sections", out.Dropped)
	}
	src.form = out.Wasm
	if c.cfg.Isolation == nil && !out.Segments && len(bin.memories) == 1 {
		src.form, src.data = shell.Detach(out.Wasm, code.startSize)
	}
	return nil
}

// blame returns what wazero finds wrong with a module's own bytes, or err where
// it finds nothing: in a metered module functions have other numbers.
func blame(ctx context.Context, wasm []byte, err error) error {
	if own := validate(ctx, wasm); own != nil {
		return own
	}
	return err
}

// linkMeter makes the host module that a metered module imports from.
func (c *code) linkMeter(ctx context.Context) error {
	if !c.metered {
		return nil
	}
	_, err := c.runtime.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(vm.HostFunc(refill), nil, nil).Export(meter.RefillFunc).Instantiate(ctx)
	return err
}
