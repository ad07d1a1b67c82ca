// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/internal/shell"
	"github.com/wasmctl/wasmctl/host/meter"
)

// formVersion names the form in which modules are compiled. It is part of the name of an
// entry of the cache, so it must change whenever the result of form changes; a test checks
// that.
const formVersion = 5

// source is a module that is to be compiled.
type source struct {
	*Module

	form []byte // the bytes to compile; nil before they are needed
	data []byte // data detached from the form; nil if there is none
}

// form sets the bytes that are compiled in place of the module's own: its tables are
// bounded, it counts its work (docs/metering.md), and its data is detached. Guest processes
// also read the files of the module from them.
func (c *Compiler) form(code *Code, src *source) error {
	wasm := src.boundTables()
	rest := wasm
	if !c.Isolated && len(src.memories) == 1 {
		rest, src.data = shell.Detach(wasm, code.StartSize)
	}
	out, err := meter.Rewrite(rest, meter.Config{MaxStack: c.stack(code.Info)})
	if err == nil && src.data != nil && out.Segments { // the code needs the data
		src.data = nil
		out, err = meter.Rewrite(wasm, meter.Config{MaxStack: c.stack(code.Info)})
	}
	if err != nil {
		return fmt.Errorf("cannot be metered: %w", err)
	}
	code.MaxStack, code.work, code.Globals = out.MaxStack, out.Work, out.Globals
	if src.start || !src.Exports(abi.ExportInitialize) { // would run in each instance; nothing runs
		code.Globals = -1
	}
	src.form = out.Wasm
	for i := range src.sections {
		if s := &src.sections[i]; c.Isolated && s.ID == binary.SectionCustom && s.Name == abi.FilesSection {
			src.form = append(src.form, src.wasm[s.Start:s.End]...)
		}
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
