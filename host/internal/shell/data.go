// SPDX-License-Identifier: Apache-2.0

package shell

import "github.com/wasmctl/wasmctl/host/internal/binary"

// Segment is data that a memory starts with.
type Segment struct {
	At    uint32
	Bytes []byte
}

// Detach returns a module without its data segments, and what they are as a data
// section has it, for Segments. It is for modules whose code uses no segments. The
// second result is nil where the module keeps them: it has none, or they are such that
// wazero has to look at them, as those that do not lie within so many bytes.
func Detach(wasm []byte, memory int64) (rest, data []byte) {
	sections, err := binary.Sections(wasm)
	if err != nil {
		return wasm, nil
	}
	declared := -1
	for i := range sections {
		r := sections[i].Body
		switch sections[i].ID {
		case binary.SectionDataCount:
			if declared = int(r.U32()); r.End() != nil {
				return wasm, nil
			}
		case binary.SectionData:
			if data != nil {
				return wasm, nil
			}
			data = r.Rest()
		}
	}
	segments, ok := Segments(data, memory)
	if data == nil || !ok || declared >= 0 && declared != len(segments) {
		return wasm, nil
	}
	out := append(make([]byte, 0, len(wasm)-len(data)), binary.Header...)
	for _, s := range sections {
		if s.ID != binary.SectionData && s.ID != binary.SectionDataCount {
			out = append(out, wasm[s.Start:s.End]...)
		}
	}
	return out, data
}

const (
	opI32Const = 0x41
	opEnd      = 0x0b
	minSegment = 5 // bytes of one that is empty
)

// Segments reads a data section whose segments all lie in the one memory, within so
// many bytes.
func Segments(data []byte, memory int64) (out []Segment, ok bool) {
	r := binary.NewReader(data, 0)
	n := r.Count()
	for out = make([]Segment, 0, min(n, r.Left()/minSegment)); n > 0 && r.OK(); n-- {
		flags, op := r.Byte(), r.Byte()
		at := uint32(r.LEB(5)) //nolint:gosec // the bits of an i32
		end, b := r.Byte(), r.Block()
		if flags != 0 || op != opI32Const || end != opEnd || int64(at)+int64(b.Left()) > memory {
			return nil, false
		}
		out = append(out, Segment{at, b.Rest()})
	}
	return out, r.End() == nil
}
