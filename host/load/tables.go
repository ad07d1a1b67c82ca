// SPDX-License-Identifier: Apache-2.0

package load

import "github.com/wasmctl/wasmctl/host/internal/binary"

// maxTableEntries bounds all tables of an instance together, and maxTables their number.
// Tables lie outside of linear memory, with 8 bytes for each entry.
const (
	maxTableEntries = 1 << 17
	maxTables       = 100
)

// boundTables returns the module with tables that cannot grow beyond maxTableEntries. Wazero
// has no limit for them, and a guest that grows one in a loop would take all memory of the
// host. To the guest a lower maximum is a table.grow that fails, which it may at any time.
// A module whose tables are bounded is returned unchanged.
func (m *Module) boundTables() []byte {
	if len(m.tables) == 0 {
		return m.wasm
	}
	limit := uint32(maxTableEntries / len(m.tables)) //nolint:gosec // a small number
	bounded := true
	payload := binary.AppendU32(nil, uint32(len(m.tables))) //nolint:gosec // a small number
	for _, t := range m.tables {
		most := max(t.Min, limit)
		if t.HasMax && t.Max <= most {
			most = t.Max
		} else {
			bounded = false
		}
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
