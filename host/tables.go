package host

import "github.com/wasmctl/wasmctl/host/internal/binary"

// maxTableEntries bounds all tables of an instance together, and maxTables how
// many there are. Tables live outside of linear memory, at 8 bytes an entry.
const (
	maxTableEntries = 1 << 17
	maxTables       = 100
)

// boundTables returns a module whose tables cannot grow beyond maxTableEntries:
// wazero has no limit for them, and a guest that grows one in a loop would take
// all memory of the host. To the guest a lower maximum is a table.grow that
// fails, which it may at any time. A module with bounded tables is returned
// unchanged.
func boundTables(wasm []byte, bin *binaryModule) []byte {
	if len(bin.tables) == 0 {
		return wasm
	}
	limit := uint32(maxTableEntries / len(bin.tables)) //nolint:gosec // a small number
	bounded := true
	payload := binary.AppendU32(nil, uint32(len(bin.tables))) //nolint:gosec // a small number
	for _, t := range bin.tables {
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
		return wasm
	}
	out := append(make([]byte, 0, len(wasm)+len(payload)), binary.Header...)
	for _, s := range bin.sections {
		if s.ID == binary.SectionTable {
			out = binary.AppendSection(out, binary.SectionTable, payload)
		} else {
			out = append(out, wasm[s.Start:s.End]...)
		}
	}
	return out
}
