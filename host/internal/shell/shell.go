// SPDX-License-Identifier: Apache-2.0

// Package shell makes the shell of a module: all of it but what its functions do.
//
// Who has the compiled code of a module still has wazero decode and validate the
// module, as that describes the code: its types, imports, tables and exports. For
// that the shell is enough. Nothing of it is ever compiled to be run: each of its
// functions traps, and its compiled code is replaced by that of the module.
package shell

import "github.com/wasmctl/wasmctl/host/internal/binary"

// body is a function without locals that traps: its size, no locals, unreachable, end.
var body = []byte{3, 0, 0x00, 0x0b}

// Of returns the shell of a module.
func Of(wasm []byte) ([]byte, error) {
	sections, err := binary.Sections(wasm)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(wasm)/2), binary.Header...)
	for i := range sections {
		s := &sections[i]
		if s.ID != binary.SectionCode {
			out = append(out, wasm[s.Start:s.End]...)
			continue
		}
		r := s.Body
		n := r.Count()
		if !r.OK() {
			return nil, r.Err()
		}
		payload := binary.AppendU32(make([]byte, 0, 5+n*len(body)), uint32(n)) //nolint:gosec // counts fit
		for range n {
			payload = append(payload, body...)
		}
		out = binary.AppendSection(out, binary.SectionCode, payload)
	}
	return out, nil
}
