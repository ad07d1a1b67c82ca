// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/share"
)

// Code is a module's bytes, compiled: instances are made from it. If it is isolated, guest
// processes compile or load its Form, and this process has no machine code.
type Code struct {
	// Info describes the module. Its manifest is that of describe if the module has no
	// section, once describe was called.
	Info *Info
	// Files are the files that the guest can read.
	Files *wasi.Files
	// Hooks are the exports of the ABI that the module has.
	Hooks map[string]bool
	// Several reports that the module has several controllers.
	Several bool
	// StartSize is the memory with which an instance starts, in bytes.
	StartSize int64
	// Outside bounds the memory of an instance outside of its linear memory, in bytes. It is
	// 0 in a guest process, because the host charges it.
	Outside int64
	// MaxStack is how many bytes of stack a call may use.
	MaxStack int64
	// Globals is the number of an instance's globals that the host can set, if they and the
	// memory are all of its state; else -1. An image of an instance needs that.
	Globals int

	work    int64 // the estimated work of compiling, in instructions of simple code
	machine *machine
	shared  *sharedCode // the owner of machine, if several modules use it; else nil
	form    []byte      // for guest processes
	stored  *stored     // the compiled form, if it is stored for guest processes; else nil

	bill    *share.Bill    // for memory; nil before the code is charged
	account *share.Account // of the tenant
}

// Linker returns the host function for an import of a guest.
type Linker func(module, name string) vm.HostFunc

// newCode describes the code of a module.
func newCode(m *Module) *Code {
	code := &Code{Info: newInfo(m), Files: m.files, Hooks: map[string]bool{}, Several: len(m.manifestSections()) > 1, Globals: -1}
	code.Outside = m.outside() / share.PageSize * share.PageSize // the budget counts whole pages
	if mem := m.memory(); mem != nil {
		code.StartSize = mem.Min
	}
	for _, e := range abi.Exports {
		code.Hooks[e.Name] = m.Exports(e.Name)
	}
	return code
}

// Instantiate makes an instance in this process.
func (c *Code) Instantiate(ctx context.Context, config vm.Config) (vm.Module, error) {
	return c.machine.runtime.InstantiateModule(ctx, c.machine.compiled, config)
}

// Base returns the memory with which instances start, or nil if wazero sets it up.
func (c *Code) Base() *linear.Image { return c.machine.base }

// Rest releases the memory of code that lies in a file.
func (c *Code) Rest() {
	if c.machine != nil {
		c.machine.rest()
	}
}

// Machine identifies the machine code: modules that share code have the same.
func (c *Code) Machine() any { return c.machine }

// InFile returns how many bytes of machine code lie in a file, and not in memory.
func (c *Code) InFile() int { return len(c.machine.inFile) }

// charge charges the code to its account.
func (c *Code) charge(bill *share.Bill) error {
	bytes := int64(len(c.form))
	if c.machine != nil {
		bytes = c.machine.memory()
	}
	if err := bill.Join(c.account, bytes); err != nil {
		return err
	}
	c.bill = bill
	return nil
}

// Close closes the code in this process. Code that other modules share stays until they
// close it. More calls do nothing.
func (c *Code) Close(ctx context.Context) error {
	m, shared := c.machine, c.shared
	c.machine, c.shared = nil, nil
	if c.bill != nil {
		c.bill.Leave(c.account)
		c.bill = nil
	}
	switch {
	case shared != nil:
		return shared.leave(ctx)
	case m != nil:
		return m.close(ctx)
	}
	return nil
}

// link makes the host modules that the guest imports from.
func (m *machine) link(ctx context.Context, imports []imported, link Linker) error {
	_, err := m.runtime.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(link(meter.ImportModule, meter.RefillFunc), nil, nil).Export(meter.RefillFunc).Instantiate(ctx)
	if err != nil {
		return err
	}
	for _, module := range [...]string{abi.ImportModule, wasi.Module} {
		b := m.runtime.NewHostModuleBuilder(module)
		seen := map[string]bool{}
		for _, imp := range imports {
			if imp.module != module || seen[imp.name] {
				continue
			}
			seen[imp.name] = true
			b.NewFunctionBuilder().
				WithGoModuleFunction(link(module, imp.name), valueTypes(imp.typ.Params), valueTypes(imp.typ.Results)).
				Export(imp.name)
		}
		if len(seen) == 0 {
			continue
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func valueTypes(ts []abi.ValType) []byte {
	out := make([]byte, len(ts))
	for i, t := range ts {
		out[i] = byte(t)
	}
	return out
}
