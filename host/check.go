package host

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
)

// exportStart is WASI's entry of a command. The runtime of its language starts
// there and nowhere else, so that every other export of it traps.
const exportStart = "_start"

// problems returns every reason in a module's sections why it cannot be
// loaded, in the order of ABI.md: the marker, memory, exports, imports.
func (m *binaryModule) problems(limit int64) []string {
	marker, known := m.checkMarker()
	if !known && marker != "" {
		return []string{marker} // of another ABI: nothing else here holds for it
	}
	var out []string
	if marker != "" {
		out = append(out, marker)
	}
	if m.exportsFunc(exportStart) && !m.exportsFunc(abi.ExportInitialize) {
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
func (m *binaryModule) checkMarker() (problem string, known bool) {
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
func (m *binaryModule) abiVersions() []int {
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

func (m *binaryModule) checkMemory(limit int64) []string {
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
	out = append(out, checkStartSize(m.memory(), limit)...)
	var entries int64
	for _, t := range m.tables {
		entries += int64(t.Min)
	}
	if entries > maxTableEntries || len(m.tables) > maxTables {
		out = append(out, fmt.Sprintf("table: %d entries in %d tables, the limit is %d in %d", entries, len(m.tables), maxTableEntries, maxTables))
	}
	return out
}

// checkStartSize says whether a module's memory is over the limit before it has
// grown.
func checkStartSize(mem *Memory, limit int64) []string {
	if mem == nil || mem.Min <= limit {
		return nil
	}
	return []string{fmt.Sprintf("memory: needs %s to start, the limit is %s: raise the memory limit", sizeText(mem.Min), sizeText(limit))}
}

// memory is the size of the module's memory, or nil.
func (m *binaryModule) memory() *Memory {
	if len(m.memories) == 0 {
		return nil
	}
	l := m.memories[0]
	return &Memory{Min: int64(l.Min) * pageSize, Max: int64(l.Max) * pageSize}
}

func (m *binaryModule) checkExports() []string {
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

func (m *binaryModule) checkImports() []string {
	var out []string
	for _, imp := range m.imports {
		if p := imp.problem(); p != "" {
			out = append(out, fmt.Sprintf("import[%s.%s]: %s", imp.module, imp.name, p))
		}
	}
	return out
}

func (imp *wasmImport) problem() string {
	if imp.kind != binary.KindFunc {
		return "found a " + kindNames[imp.kind] + ", expected a function"
	}
	var want abi.FuncType
	switch imp.module {
	case abi.ImportModule:
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

// validate checks a module's code without compiling it: with a context that
// has ended, wazero decodes and validates and stops before it compiles.
func validate(ctx context.Context, wasm []byte) error {
	r := vm.NewRuntime(ctx, nil)
	defer func() { _ = r.Close(ctx) }()
	stopped, stop := context.WithCancel(vm.WithWorkers(ctx, compilationWorkers))
	stop()
	_, err := compileSafely(stopped, r, wasm)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// compileSafely is CompileModule for bytes of anybody: a panic of the decoder
// or the compiler is an error.
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
