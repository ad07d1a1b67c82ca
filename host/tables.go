package host

import "encoding/binary"

// maxTableEntries bounds all tables of an instance together, and maxTables how
// many there are. Tables live outside of linear memory, at 8 bytes an entry.
const (
	maxTableEntries = 1 << 17
	maxTables       = 100
)

// boundTables returns a module whose tables cannot grow beyond
// maxTableEntries: wazero has no limit for them, and a guest that grows one in
// a loop would take all memory of the host. To the guest a lower maximum is a
// table.grow that fails, which it may at any time. A module whose tables are
// bounded already comes back as it is.
func boundTables(wasm []byte, bin *binaryModule) []byte {
	if len(bin.tables) == 0 {
		return wasm
	}
	limit := uint32(maxTableEntries / len(bin.tables)) //nolint:gosec // a small number
	bounded := true
	payload := binary.AppendUvarint(nil, uint64(len(bin.tables)))
	for _, t := range bin.tables {
		most := max(t.min, limit)
		if t.hasMax && t.max <= most {
			most = t.max
		} else {
			bounded = false
		}
		payload = append(payload, t.elem, 1)
		payload = binary.AppendUvarint(payload, uint64(t.min))
		payload = binary.AppendUvarint(payload, uint64(most))
	}
	if bounded {
		return wasm
	}
	out := append(make([]byte, 0, len(wasm)+len(payload)), wasm[:headerSize]...)
	for _, s := range bin.sections {
		if s.id == sectionTable {
			out = appendSection(out, sectionTable, payload)
		} else {
			out = append(out, wasm[s.start:s.end]...)
		}
	}
	return out
}
