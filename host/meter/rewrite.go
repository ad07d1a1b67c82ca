// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strconv"

	"github.com/wasmctl/wasmctl/host/internal/binary"
)

// rewriter writes the sections of a metered module.
type rewriter struct {
	*module
	stack   int64 // Output.MaxStack
	out     []byte
	payload []byte // of the current section
}

// rewrite returns the metered module. Of its custom sections, it has only the names: others are
// never read, and many have offsets into the code.
func (m *module) rewrite(maxStack int64) ([]byte, error) {
	size := 0
	for i := range m.sections {
		if s := &m.sections[i]; s.ID != binary.SectionCustom {
			size += s.End - s.Start
		}
	}
	w := &rewriter{module: m, stack: maxStack, out: make([]byte, 0, size+size/2+256)}
	w.out = append(w.out, binary.Header...)
	// Additions go into these sections. Missing ones are created at their position.
	missing := []byte{binary.SectionType, binary.SectionImport, binary.SectionGlobal, binary.SectionExport}
	if m.voidType >= 0 {
		missing = missing[1:]
	}
	names := &binary.Section{ID: binary.SectionCustom, Name: nameSection}
	for i := range m.sections {
		s := &m.sections[i]
		for s.ID != binary.SectionCustom && len(missing) > 0 && rank[missing[0]] <= rank[s.ID] {
			if missing[0] != s.ID {
				w.make(missing[0])
			}
			missing = missing[1:]
		}
		if s.ID == binary.SectionCustom {
			if s.Name != nameSection {
				continue
			}
			if names.End > 0 {
				return nil, binary.Errorf(s.Start, "second name section")
			}
			if names.End = s.End; s.End-s.Start <= maxNames {
				names = s // it must follow all others
			}
			continue
		}
		if err := w.section(s); err != nil {
			return nil, err
		}
	}
	for _, id := range missing {
		w.make(id)
	}
	if err := w.names(names); err != nil {
		return nil, err
	}
	return w.out, nil
}

// emptyVector reads a vector without elements.
func emptyVector() *binary.Reader {
	r := binary.NewReader([]byte{0}, 0)
	return &r
}

// make writes a section that the module lacks.
func (w *rewriter) make(id byte) {
	_ = w.section(&binary.Section{ID: id, Body: *emptyVector()}) // an empty vector is valid
}

// section writes one section.
func (w *rewriter) section(s *binary.Section) error {
	r := s.Body
	w.payload = w.payload[:0]
	switch s.ID {
	case binary.SectionType:
		w.appendTo(&r, w.voidType < 0, binary.FormFunc, 0, 0)
	case binary.SectionImport:
		w.imports(&r)
	case binary.SectionGlobal:
		w.globalSection(&r)
	case binary.SectionExport:
		w.exports(&r)
	case binary.SectionStart:
		w.payload = binary.AppendU32(w.payload, w.funcIndex(&r))
	case binary.SectionElement:
		w.vector(&r, 0, w.element)
	case binary.SectionData:
		w.vector(&r, 0, w.data)
	case binary.SectionCode:
		return w.code()
	default:
		w.out = append(w.out, w.wasm[s.Start:s.End]...)
		return nil
	}
	w.out = binary.AppendSection(w.out, s.ID, w.payload)
	return r.End()
}

// appendTo copies a vector and adds an element to it.
func (w *rewriter) appendTo(r *binary.Reader, add bool, element ...byte) {
	n := r.U32()
	if add {
		n++
	}
	w.payload = binary.AppendU32(w.payload, n)
	w.copyRest(r)
	if add {
		w.payload = append(w.payload, element...)
	}
}

func (w *rewriter) copyRest(r *binary.Reader) {
	w.payload = append(w.payload, r.Rest()...)
	r.Skip(r.Left())
}

// copyFrom copies the bytes that were read since from.
func (w *rewriter) copyFrom(r *binary.Reader, from int) {
	w.payload = append(w.payload, r.Since(from)...)
}

// vector rewrites each element of a vector. The caller appends further elements.
func (w *rewriter) vector(r *binary.Reader, added uint32, f func(*binary.Reader)) {
	n := r.Count()
	w.payload = binary.AppendU32(w.payload, uint32(n)+added) //nolint:gosec // counts fit
	for ; n > 0 && r.OK(); n-- {
		f(r)
	}
}

// imports adds the refill function after all imports. Imported functions keep their index, and the
// others move by one.
func (w *rewriter) imports(r *binary.Reader) {
	void := w.voidType
	if void < 0 {
		void = len(w.types)
	}
	var e []byte
	e = binary.AppendName(e, ImportModule)
	e = binary.AppendName(e, RefillFunc)
	e = append(e, binary.KindFunc)
	e = binary.AppendU32(e, uint32(void)) //nolint:gosec // counts fit
	w.appendTo(r, true, e...)
}

// globalSection adds the two counters after all globals, so that none moves.
func (w *rewriter) globalSection(r *binary.Reader) {
	w.vector(r, 2, func(r *binary.Reader) {
		from := r.Pos()
		r.Skip(2)
		w.copyFrom(r, from)
		w.constExpr(r)
	})
	for _, v := range []int64{0, w.stack} {
		w.payload = append(w.payload, typeI64, 1, opI64Const)
		w.payload = append(binary.AppendS64(w.payload, v), opEnd)
	}
}

// exports moves functions, and adds the two counters and the module's globals.
func (w *rewriter) exports(r *binary.Reader) {
	own := max(0, w.exported())
	w.vector(r, 2+uint32(own), func(r *binary.Reader) {
		from := r.Pos()
		r.Name()
		kind := r.Byte()
		w.copyFrom(r, from)
		idx := r.U32()
		if kind == binary.KindFunc {
			idx = w.shift(idx)
		}
		w.payload = binary.AppendU32(w.payload, idx)
	})
	w.payload = append(binary.AppendName(w.payload, FuelGlobal), binary.KindGlobal)
	w.payload = binary.AppendU32(w.payload, w.fuelGlobal())
	w.payload = append(binary.AppendName(w.payload, StackGlobal), binary.KindGlobal)
	w.payload = binary.AppendU32(w.payload, w.stackGlobal())
	for i, global := range w.mutable[:own] {
		w.payload = append(binary.AppendName(w.payload, GlobalPrefix+strconv.Itoa(i)), binary.KindGlobal)
		w.payload = binary.AppendU32(w.payload, global)
	}
}

// funcIndex reads the index of a function and returns its new index.
func (w *rewriter) funcIndex(r *binary.Reader) uint32 {
	idx := r.U32()
	w.checkFunc(r, idx)
	return w.shift(idx)
}

// element rewrites one segment of the element section. Of its flags, the lowest one means that it
// is not active, the next one that it has a table index or is only declared, and the third one that
// it has expressions instead of functions.
func (w *rewriter) element(r *binary.Reader) {
	from := r.Pos()
	flags := r.U32()
	if flags > 7 {
		r.Failf("element flags %d are unknown", flags)
		return
	}
	if flags&3 == 2 {
		r.U32()
	}
	w.copyFrom(r, from)
	if flags&1 == 0 {
		w.constExpr(r)
	}
	if flags&3 != 0 { // a kind or type
		w.payload = append(w.payload, r.Byte())
	}
	w.vector(r, 0, func(r *binary.Reader) {
		if flags&4 != 0 {
			w.constExpr(r)
		} else {
			w.payload = binary.AppendU32(w.payload, w.funcIndex(r))
		}
	})
}

// data copies one segment of the data section. Its offset may refer to a global.
func (w *rewriter) data(r *binary.Reader) {
	from := r.Pos()
	flags := r.U32()
	if flags == 2 {
		r.U32()
	}
	w.copyFrom(r, from)
	if flags != 1 {
		w.constExpr(r)
	}
	from = r.Pos()
	r.Block()
	w.copyFrom(r, from)
}

// constExpr rewrites a constant expression.
func (w *rewriter) constExpr(r *binary.Reader) {
	for r.OK() {
		var in instr
		decode(r, &in, -1)
		vector := in.op == opVector && in.sub == 0x0c // v128.const
		switch in.op {
		case opI32Const, opI64Const, 0x43, 0x44, opEnd, opRefNull, 0x6a, 0x6b, 0x6c, opI64Add, opI64Sub, 0x7e:
		case opGlobalGet:
			w.checkGlobal(r, in.a)
		case opRefFunc:
			w.checkFunc(r, in.a)
			w.payload = binary.AppendU32(append(w.payload, opRefFunc), w.shift(in.a))
			continue
		default:
			if !vector {
				r.Failf("opcode %#x is not allowed in a constant expression", in.op)
			}
		}
		w.copyFrom(r, in.at)
		if in.op == opEnd {
			return
		}
	}
}

// code writes the code section directly to the output, after a length of fixed width.
func (w *rewriter) code() error {
	const width = 5
	w.out = append(w.out, binary.SectionCode)
	start := len(w.out)
	w.out = append(w.out, make([]byte, width)...)
	w.out = binary.AppendU32(w.out, uint32(len(w.bodies))) //nolint:gosec // counts fit
	s := scanner{m: w.module}
	for i := range w.bodies {
		if err := s.scan(i); err != nil {
			return err
		}
		w.payload = s.emit(w.payload[:0])
		w.out = binary.AppendU32(w.out, uint32(len(w.payload))) //nolint:gosec // counts fit
		w.out = append(w.out, w.payload...)
	}
	size := uint64(len(w.out) - start - width) //nolint:gosec // not negative
	for i := range width {
		w.out[start+i] = byte(size>>(7*i)) | 0x80
	}
	w.out[start+width-1] &^= 0x80
	return nil
}
