// SPDX-License-Identifier: Apache-2.0

package meter

import "github.com/wasmctl/wasmctl/host/internal/binary"

// maxGlobals is the maximum number of exported globals. Go's modules have eight, and LLVM's have
// one or two.
const maxGlobals = 64

// exported is Output.Globals.
func (m *module) exported() int {
	if m.otherwise || len(m.mutable) > maxGlobals {
		return -1
	}
	return len(m.mutable)
}

// readGlobals counts the globals, and finds the mutable ones. The rewriter reports errors of the
// section.
func (m *module) readGlobals(r binary.Reader) {
	first, n := m.globals, r.Count()
	m.globals += n
	w := rewriter{module: m}
	for i := range n {
		typ, mutable := r.Byte(), r.Byte() == 1
		w.payload = w.payload[:0]
		if w.constExpr(&r); !r.OK() {
			m.otherwise = true
			return
		}
		if !mutable {
			continue
		}
		if typ < typeF64 || typ > typeI32 { // a vector or a reference
			m.otherwise = true
		}
		m.mutable = append(m.mutable, uint32(first+i)) //nolint:gosec // counts fit
	}
}

// changesOthers reports whether an instruction changes tables or segments.
func (in *instr) changesOthers() bool {
	if !in.prefix {
		return in.op == opTableSet
	}
	if in.op != opMisc {
		return false
	}
	switch in.sub {
	case miscDataDrop, miscTableInit, miscElemDrop, miscTableCopy, miscTableGrow, miscTableFill:
		return true
	}
	return false
}

// usesData reports whether an instruction uses data segments.
func (in *instr) usesData() bool {
	return in.prefix && in.op == opMisc && (in.sub == miscMemoryInit || in.sub == miscDataDrop)
}
