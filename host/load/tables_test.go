// SPDX-License-Identifier: Apache-2.0

package load

import (
	"runtime"
	"slices"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// repeated returns a vector of n equal elements.
func repeated(n int, element ...byte) []byte {
	return append(binary.AppendU32(nil, uint32(n)), slices.Repeat(element, n)...)
}

// module returns a module with one function, a memory of one page, and these sections.
func module(global, table, element, data []byte) []byte {
	b := []byte(binary.Header)
	for _, s := range []struct {
		id      byte
		content []byte
	}{
		{binary.SectionType, []byte{1, binary.FormFunc, 0, 0}},
		{binary.SectionFunction, []byte{1, 0}},
		{binary.SectionTable, table},
		{binary.SectionMemory, []byte{1, 0, 1}},
		{binary.SectionGlobal, global},
		{binary.SectionElement, element},
		{binary.SectionCode, []byte{1, 2, 0, 0x0b}},
		{binary.SectionData, data},
	} {
		b = binary.AppendSection(b, s.id, s.content)
	}
	return b
}

// The memory that an instance takes on Go's heap is at most what Code.Outside charges, and at
// least half of it.
func TestOutside_BoundsTheHeap(t *testing.T) {
	const instances = 8
	none := []byte{0}
	tables := append([]byte{1, 0x70, 1}, slices.Concat(binary.AppendU32(nil, 100_000), binary.AppendU32(nil, 100_000))...)
	passive := append([]byte{1, 1, 0}, repeated(100_000, 0)...) // of the first function
	for name, wasm := range map[string][]byte{
		"globals":  module(repeated(100_000, 0x7f, 1, 0x41, 0, 0x0b), none, none, none),
		"tables":   module(none, tables, none, none),
		"elements": module(none, none, passive, none),
		"segments": module(none, none, none, repeated(100_000, 1, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := parseModule(wasm)
			if err != nil {
				t.Fatal(err)
			}
			machine, err := compileHere(t.Context(), wasm, 1)
			if err != nil {
				t.Fatal(err)
			}
			code := &Code{machine: machine}
			defer func() { _ = code.Close(t.Context()) }()
			before := heap()
			made := make([]vm.Module, instances)
			for i := range made {
				if made[i], err = code.Instantiate(t.Context(), vm.NewConfig()); err != nil {
					t.Fatal(err)
				}
			}
			got, charged := (heap()-before)/instances, m.outside()
			runtime.KeepAlive(made)
			const rest = 128 << 10 // the linear memory, which is on the heap here, and what any instance takes
			if got-rest > charged || got < charged/2 {
				t.Errorf("an instance takes %d bytes, and %d are charged", got, charged)
			}
		})
	}
}

// heap returns the bytes in use on Go's heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc) //nolint:gosec // far below 2^63
}
