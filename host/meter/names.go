// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strconv"

	"github.com/wasmctl/wasmctl/host/internal/binary"
)

const nameSection = "name"

// maxNames bounds the name section, in bytes, because the names stay in memory. Without them, stack
// traces show the numbers of functions.
const maxNames = 8 << 20

// names rewrites the name section: the names of the module and of its functions stay, and those of
// locals, which no stack trace shows, are omitted. A function without a name gets the one that
// wazero would show: its index in the original module, so that stack traces stay the same.
func (w *rewriter) names(s *binary.Section) error {
	w.payload = w.payload[:0]
	r := s.Body
	done := false
	for r.Left() > 0 && r.OK() {
		from := r.Pos()
		id := r.Byte()
		if !done && id >= binary.NamesOfFunctions {
			done = true
			if id != binary.NamesOfFunctions {
				w.functionNames(emptyVector())
			}
		}
		part := r.Block()
		switch id {
		case binary.NameOfModule:
			w.copyFrom(&r, from)
			part.Name()
			_ = part.End() // part still has the error
		case binary.NamesOfFunctions:
			w.functionNames(&part)
		case binary.NamesOfLocals:
			part.Each(func(r *binary.Reader) {
				r.U32()
				r.Each(func(r *binary.Reader) {
					r.U32()
					r.Name()
				})
			})
		}
		r.Fail(part.Err())
	}
	if !done {
		w.functionNames(emptyVector())
	}
	if r.OK() {
		w.out = binary.AppendSection(w.out, binary.SectionCustom, append(binary.AppendName(nil, nameSection), w.payload...))
	}
	return r.Err()
}

// functionNames writes the names of functions, and substitutes for missing ones.
func (w *rewriter) functionNames(r *binary.Reader) {
	var out []byte
	count, next := uint32(0), uint32(w.imported) //nolint:gosec // counts fit
	upTo := func(idx uint32) {
		for ; next < idx && int64(next) < int64(len(w.funcs)); next++ {
			out = binary.AppendU32(out, next+1)
			out = binary.AppendName(out, "$"+strconv.Itoa(int(next)))
			count++
		}
	}
	for n := r.Count(); n > 0 && r.OK(); n-- {
		idx := r.U32()
		upTo(idx)
		next = max(next, idx+1)
		out = binary.AppendU32(out, w.shift(idx))
		out = binary.AppendName(out, r.Name())
		count++
	}
	upTo(uint32(len(w.funcs))) //nolint:gosec // counts fit
	if r.End() != nil {
		return
	}
	w.namePart(binary.NamesOfFunctions, count, out)
}

// namePart writes one part of the name section.
func (w *rewriter) namePart(id byte, count uint32, names []byte) {
	w.payload = binary.AppendSection(w.payload, id, append(binary.AppendU32(nil, count), names...))
}
