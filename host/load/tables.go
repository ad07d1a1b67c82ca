// SPDX-License-Identifier: Apache-2.0

package load

import "github.com/wasmctl/wasmctl/host/internal/binary"

// maxTableEntries bounds all tables of an instance together, and maxTables their number.
// Tables lie outside of linear memory, with 8 bytes for each entry.
const (
	maxTableEntries = 1 << 17
	maxTables       = 100
)

// Sizes of parts of an instance in wazero 1.12, in bytes. TestOutside_BoundsTheHeap compares
// them with an instance.
const (
	globalSize  = 64 + 8 + 16 // the global, the pointer to it, and its place in the engine's context
	elementSize = 32 + 2*8    // a function that an entry refers to, and the pointers of a slice that has grown
	entrySize   = 8           // of a table, or of an instance of an element segment
	segmentSize = 24          // a slice
)

// outside bounds the memory of an instance outside of its linear memory, in bytes: globals,
// tables as large as boundTables lets them become, and segments.
func (m *Module) outside() int64 {
	entries := m.elements
	for _, t := range m.tables {
		entries += int(t.most(len(m.tables)))
	}
	return int64(m.globals*globalSize + m.elements*elementSize + entries*entrySize + m.segments*segmentSize)
}

// most returns the most entries that a table of n gets.
func (t *table) most(n int) uint32 {
	most := max(t.Min, uint32(maxTableEntries/n)) //nolint:gosec // a small number
	if t.HasMax {
		most = min(most, t.Max)
	}
	return most
}

// boundTables returns the module with tables that cannot grow beyond maxTableEntries. Wazero
// has no limit for them, and a guest that grows one in a loop would take all memory of the
// host. To the guest a lower maximum is a table.grow that fails, which it may at any time.
// A module whose tables are bounded is returned unchanged.
func (m *Module) boundTables() []byte {
	if len(m.tables) == 0 {
		return m.wasm
	}
	bounded := true
	payload := binary.AppendU32(nil, uint32(len(m.tables))) //nolint:gosec // a small number
	for _, t := range m.tables {
		most := t.most(len(m.tables))
		bounded = bounded && t.HasMax && t.Max == most
		payload = append(payload, t.elem, 1)
		payload = binary.AppendU32(payload, t.Min)
		payload = binary.AppendU32(payload, most)
	}
	if bounded {
		return m.wasm
	}
	out := append(make([]byte, 0, len(m.wasm)+len(payload)), binary.Header...)
	for _, s := range m.sections {
		if s.ID == binary.SectionTable {
			out = binary.AppendSection(out, binary.SectionTable, payload)
		} else {
			out = append(out, m.wasm[s.Start:s.End]...)
		}
	}
	return out
}
