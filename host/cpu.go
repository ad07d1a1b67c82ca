package host

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/shell"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/meter"
)

// form sets the bytes that are compiled in place of the module's own: its tables are
// bounded, it counts its work (docs/metering.md), and its data is detached.
func (c compiler) form(code *code, src *source) error {
	wasm, bin := boundTables(src.wasm, src.bin), src.bin
	if c.cfg.Isolation == nil {
		var err error
		if wasm, err = withoutSections(wasm, ownSection); err != nil {
			return err
		}
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

// blame returns the error that wazero finds in the module's own bytes, because functions
// have other numbers in the metered form. If it finds none, blame returns err.
func blame(ctx context.Context, wasm []byte, err error) error {
	if own := validate(ctx, wasm); own != nil {
		return own
	}
	return err
}

// linkMeter makes the host module that a metered module imports from.
func (c *code) linkMeter(ctx context.Context) error {
	_, err := c.runtime.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(vm.HostFunc(refill), nil, nil).Export(meter.RefillFunc).Instantiate(ctx)
	return err
}
