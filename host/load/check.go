// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/share"
)

// exportStart is the entry of a WASI command. The runtime of its language starts only there,
// so every other export of it traps.
const exportStart = "_start"

// wasiFuncs are the functions of WASI that there are.
var wasiFuncs = wasi.Funcs()

// MaxModuleSize is the largest module that is checked, in bytes.
const MaxModuleSize = 128 << 20

// Checks are what a module is checked against.
type Checks struct {
	// Controller is the controller, of several, as which the module runs; may be empty.
	Controller string
	// Limits are the configured ones.
	Limits share.Limits
	// API reports whether operations of the API are served.
	API bool
}

// Read reads a module, and returns every problem that can be found without a compiler.
func Read(wasm []byte, c Checks) (m *Module, problems []string) {
	if size := len(wasm); size > MaxModuleSize {
		return &Module{}, []string{fmt.Sprintf("is %d bytes long, the limit is %d", size, MaxModuleSize)}
	}
	m, err := parseModule(wasm)
	if err != nil {
		return &Module{}, ShortProblems([]string{err.Error()})
	}
	m.controller = c.Controller
	man, _, _ := m.Manifest() // manifestProblems has the error
	limits, _ := c.Limits.For(man)
	problems = append(m.problems(limits.Memory), m.manifestProblems(Capabilities(c.API))...)
	return m, ShortProblems(problems)
}

// problems returns every reason in a module's sections why it cannot be loaded, in the order
// of ABI.md: the marker, memory, exports, imports.
func (m *Module) problems(limit int64) []string {
	marker, known := m.checkMarker()
	if !known && marker != "" {
		return []string{marker} // of another ABI: nothing else here holds for it
	}
	var out []string
	if marker != "" {
		out = append(out, marker)
	}
	if m.Exports(exportStart) && !m.Exports(abi.ExportInitialize) {
		out = append(out, fmt.Sprintf("export[%s]: built as a command, not as a reactor: build it with wasmctl build "+
			"(Rust: as a library with crate-type cdylib, see wasmctl new)", exportStart))
	}
	out = append(out, m.checkMemory(limit)...)
	out = append(out, m.checkExports()...)
	out = append(out, m.checkImports()...)
	return out
}

// checkMarker returns what is wrong with the ABI marker, and whether the
// module is for this host's ABI nevertheless.
func (m *Module) checkMarker() (problem string, known bool) {
	versions := m.abiVersions()
	switch {
	case slices.Contains(versions, abi.Version):
		return "", true // its type is checked with the other exports
	case len(versions) == 0:
		return fmt.Sprintf("export[%s]: missing: not a reconciler module, or built without an SDK", abi.ExportMarker), true
	case versions[0] > abi.Version:
		return fmt.Sprintf("module wants reconciler ABI %d, this host has %d: upgrade wasmctl", versions[0], abi.Version), false
	}
	return fmt.Sprintf("module wants reconciler ABI %d, this host has %d: build it with a newer SDK", versions[0], abi.Version), false
}

// abiVersions are the major versions that a module declares, newest first.
func (m *Module) abiVersions() []int {
	var out []int
	for _, e := range m.exports {
		if digits, ok := strings.CutPrefix(e.name, abi.MarkerPrefix); ok {
			if v, err := strconv.Atoi(digits); err == nil && v >= 0 {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

func (m *Module) checkMemory(limit int64) []string {
	var out []string
	e, ok := m.export(abi.ExportMemory)
	switch {
	case !ok:
		out = append(out, fmt.Sprintf("export[%s]: missing, expected a memory", abi.ExportMemory))
	case e.kind != binary.KindMemory:
		out = append(out, fmt.Sprintf("export[%s]: found a %s, expected a memory", abi.ExportMemory, kindNames[e.kind]))
	}
	if len(m.memories) > 1 {
		out = append(out, fmt.Sprintf("memory: found %d, expected one", len(m.memories)))
	}
	out = append(out, CheckStartSize(m.memory(), limit)...)
	var entries int64
	for _, t := range m.tables {
		entries += int64(t.Min)
	}
	if entries > maxTableEntries || len(m.tables) > maxTables {
		out = append(out, fmt.Sprintf("table: %d entries in %d tables, the limit is %d in %d", entries, len(m.tables), maxTableEntries, maxTables))
	}
	return out
}

// CheckStartSize returns a problem if a module's memory exceeds the limit before it grows.
func CheckStartSize(mem *Memory, limit int64) []string {
	if mem == nil || mem.Min <= limit {
		return nil
	}
	return []string{fmt.Sprintf("memory: needs %s to start, the limit is %s: raise the memory limit", share.SizeText(mem.Min), share.SizeText(limit))}
}

// memory is the size of the module's memory, or nil.
func (m *Module) memory() *Memory {
	if len(m.memories) == 0 {
		return nil
	}
	l := m.memories[0]
	return &Memory{Min: int64(l.Min) * share.PageSize, Max: int64(l.Max) * share.PageSize}
}

func (m *Module) checkExports() []string {
	var out []string
	for _, name := range [...]string{meter.FuelGlobal, meter.StackGlobal} {
		if _, taken := m.export(name); taken {
			out = append(out, fmt.Sprintf("export[%s]: reserved name: rename the export", name))
		}
	}
	for _, want := range abi.Exports {
		e, ok := m.export(want.Name)
		switch {
		case !ok && want.Required && want.Name != abi.ExportMarker: // the marker is checkMarker's
			out = append(out, fmt.Sprintf("export[%s]: missing, expected %s", want.Name, want.Type))
		case ok && e.kind != binary.KindFunc:
			out = append(out, fmt.Sprintf("export[%s]: found a %s, expected %s", want.Name, kindNames[e.kind], want.Type))
		case ok && !e.typ.Equal(want.Type):
			out = append(out, fmt.Sprintf("export[%s]: found %s, expected %s", want.Name, e.typ, want.Type))
		}
	}
	return out
}

func (m *Module) checkImports() []string {
	var out []string
	for _, imp := range m.imports {
		if p := imp.problem(); p != "" {
			out = append(out, fmt.Sprintf("import[%s.%s]: %s", imp.module, imp.name, p))
		}
	}
	return out
}

func (imp *imported) problem() string {
	if imp.kind != binary.KindFunc {
		return "found a " + kindNames[imp.kind] + ", expected a function"
	}
	var want abi.FuncType
	switch imp.module {
	case abi.ImportModule:
		if slices.Contains(abi.RemovedFuncs, imp.name) {
			return "the ABI no longer has it: rebuild the module with the current SDK"
		}
		var known bool
		if want, known = abi.HostFuncs[imp.name]; !known {
			if imp.typ.Equal(abi.OpType) {
				return "" // linked to a stub that answers UNSUPPORTED (ABI.md, 9)
			}
			return fmt.Sprintf("this host does not have it, and %s is not the type of an operation: upgrade wasmctl", imp.typ)
		}
	case wasi.Module:
		f, known := wasiFuncs[imp.name]
		if !known {
			return "WASI preview 1 does not have it"
		}
		want = abi.FuncType{Params: valTypes(f.Params), Results: valTypes(f.Results)}
	default:
		return fmt.Sprintf("this host has no module %q: only %s and %s can be imported from", imp.module, abi.ImportModule, wasi.Module)
	}
	if !imp.typ.Equal(want) {
		return fmt.Sprintf("found %s, expected %s", imp.typ, want)
	}
	return ""
}

// validate checks a module's code without compiling it: with a context that has ended, wazero
// decodes and validates the module, and stops before it compiles.
func validate(ctx context.Context, wasm []byte) error {
	r := vm.NewRuntime(ctx, nil)
	defer func() { _ = r.Close(ctx) }()
	stopped, stop := context.WithCancel(vm.WithWorkers(ctx, MaxWorkers))
	stop()
	_, err := compileSafely(stopped, r, wasm)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// compileSafely is CompileModule for untrusted bytes: it returns a panic of the decoder or
// the compiler as an error.
func compileSafely(ctx context.Context, r vm.Runtime, wasm []byte) (c vm.Compiled, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be compiled: %v", p)
		}
	}()
	if c, err = r.CompileModule(ctx, wasm); err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	return c, nil
}
