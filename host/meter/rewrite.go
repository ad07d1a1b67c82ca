package meter

import (
	"encoding/binary"
	"strings"
)

// rewriter writes the sections of a metered module.
type rewriter struct {
	*module
	cfg     *Config
	out     []byte
	payload []byte // of the section that is being written
	dropped []string
}

// rewrite returns the metered module and the names of the sections left out.
func (m *module) rewrite(cfg *Config) ([]byte, []string, error) {
	w := &rewriter{module: m, cfg: cfg, out: make([]byte, 0, len(m.wasm)+len(m.wasm)/2+256)}
	w.out = append(w.out, header...)
	// What is added goes into these sections; where one is not there it is
	// made, at its place.
	missing := []byte{secType, secImport, secGlobal, secExport}
	if m.voidType >= 0 {
		missing = missing[1:]
	}
	names := &section{id: secCustom, name: nameSection}
	for i := range m.sections {
		s := &m.sections[i]
		for s.id != secCustom && len(missing) > 0 && rank[missing[0]] <= rank[s.id] {
			if missing[0] != s.id {
				w.make(missing[0])
			}
			missing = missing[1:]
		}
		if s.id == secCustom && s.name == nameSection {
			if names.end > 0 {
				return nil, nil, failf(s.start, "second name section")
			}
			names = s // it must come after all others
			continue
		}
		if err := w.section(s); err != nil {
			return nil, nil, err
		}
	}
	for _, id := range missing {
		w.make(id)
	}
	if err := w.names(names); err != nil {
		return nil, nil, err
	}
	return w.out, w.dropped, nil
}

// make writes a section that the module does not have.
func (w *rewriter) make(id byte) {
	_ = w.section(&section{id: id, body: reader{b: []byte{0}}}) // an empty vector can be read
}

// section writes one section.
func (w *rewriter) section(s *section) error {
	r := s.body
	w.payload = w.payload[:0]
	switch s.id {
	case secCustom:
		w.custom(s)
		return nil
	case secType:
		w.appendTo(&r, w.voidType < 0, typeFunc, 0, 0)
	case secImport:
		w.imports(&r)
	case secGlobal:
		w.globalSection(&r)
	case secExport:
		w.exports(&r)
	case secStart:
		w.payload = appendU32(w.payload, w.funcIndex(&r))
	case secElement:
		w.vector(&r, w.element)
	case secData:
		w.vector(&r, w.data)
	case secCode:
		return w.code()
	default:
		w.out = append(w.out, w.wasm[s.start:s.end]...)
		return nil
	}
	w.out = appendSection(w.out, s.id, w.payload)
	return r.end()
}

// appendTo copies a vector and adds an element to it.
func (w *rewriter) appendTo(r *reader, add bool, element ...byte) {
	n := r.u32()
	if add {
		n++
	}
	w.payload = appendU32(w.payload, n)
	w.copyRest(r)
	if add {
		w.payload = append(w.payload, element...)
	}
}

func (w *rewriter) copyRest(r *reader) {
	w.payload = append(w.payload, r.b[r.pos:]...)
	r.pos = len(r.b)
}

// copyFrom copies what was read since from.
func (w *rewriter) copyFrom(r *reader, from int) {
	w.payload = append(w.payload, r.b[from:r.pos]...)
}

// vector rewrites each element of a vector.
func (w *rewriter) vector(r *reader, f func(*reader)) {
	n := r.count()
	w.payload = appendU32(w.payload, uint32(n)) //nolint:gosec // counts fit
	for ; n > 0 && r.err == nil; n-- {
		f(r)
	}
}

// imports adds the refill function behind all imports. Functions that are
// imported keep their index, the others move by one.
func (w *rewriter) imports(r *reader) {
	void := w.voidType
	if void < 0 {
		void = len(w.types)
	}
	var e []byte
	e = appendName(e, ImportModule)
	e = appendName(e, RefillFunc)
	e = append(e, kindFunc)
	e = appendU32(e, uint32(void)) //nolint:gosec // counts fit
	w.appendTo(r, true, e...)
}

// globalSection adds the two counters behind all globals, so that none moves.
func (w *rewriter) globalSection(r *reader) {
	n := r.count()
	w.payload = appendU32(w.payload, uint32(n)+2) //nolint:gosec // counts fit
	for ; n > 0 && r.err == nil; n-- {
		from := r.pos
		r.skip(2)
		w.copyFrom(r, from)
		w.constExpr(r)
	}
	for _, v := range []int64{0, w.cfg.MaxStack} {
		w.payload = append(w.payload, typeI64, 1, opI64Const)
		w.payload = append(appendS64(w.payload, v), opEnd)
	}
}

// exports moves functions and adds the two counters.
func (w *rewriter) exports(r *reader) {
	n := r.count()
	w.payload = appendU32(w.payload, uint32(n)+2) //nolint:gosec // counts fit
	for ; n > 0 && r.err == nil; n-- {
		from := r.pos
		r.name()
		kind := r.byte()
		w.copyFrom(r, from)
		idx := r.u32()
		if kind == kindFunc {
			idx = w.shift(idx)
		}
		w.payload = appendU32(w.payload, idx)
	}
	w.payload = append(appendName(w.payload, FuelGlobal), kindGlobal)
	w.payload = appendU32(w.payload, w.fuelGlobal())
	w.payload = append(appendName(w.payload, StackGlobal), kindGlobal)
	w.payload = appendU32(w.payload, w.stackGlobal())
}

// funcIndex reads the index of a function and returns where it moved.
func (w *rewriter) funcIndex(r *reader) uint32 {
	idx := r.u32()
	w.checkFunc(r, idx)
	return w.shift(idx)
}

// element rewrites one segment of the element section. Of its flags, the
// lowest says that it is not active, the next that it has a table index or is
// declared only, the third that it holds expressions and not functions.
func (w *rewriter) element(r *reader) {
	from := r.pos
	flags := r.u32()
	if flags > 7 {
		r.failf("element flags %d are unknown", flags)
		return
	}
	if flags&3 == 2 {
		r.u32()
	}
	w.copyFrom(r, from)
	if flags&1 == 0 {
		w.constExpr(r)
	}
	if flags&3 != 0 { // a kind or type
		w.payload = append(w.payload, r.byte())
	}
	w.vector(r, func(r *reader) {
		if flags&4 != 0 {
			w.constExpr(r)
		} else {
			w.payload = appendU32(w.payload, w.funcIndex(r))
		}
	})
}

// data copies one segment of the data section. Its offset may name a global.
func (w *rewriter) data(r *reader) {
	from := r.pos
	flags := r.u32()
	if flags == 2 {
		r.u32()
	}
	w.copyFrom(r, from)
	if flags != 1 {
		w.constExpr(r)
	}
	from = r.pos
	r.block()
	w.copyFrom(r, from)
}

// constExpr rewrites a constant expression.
func (w *rewriter) constExpr(r *reader) {
	for r.err == nil {
		var in instr
		decode(r, &in, -1)
		vector := in.op == opVector && in.sub == 0x0c // v128.const
		switch in.op {
		case opI32Const, opI64Const, 0x43, 0x44, opEnd, opRefNull, 0x6a, 0x6b, 0x6c, opI64Add, opI64Sub, 0x7e:
		case opGlobalGet:
			w.checkGlobal(r, in.a)
		case opRefFunc:
			w.checkFunc(r, in.a)
			w.payload = appendU32(append(w.payload, opRefFunc), w.shift(in.a))
			continue
		default:
			if !vector {
				r.failf("opcode %#x is not allowed in a constant expression", in.op)
			}
		}
		w.copyFrom(r, in.at)
		if in.op == opEnd {
			return
		}
	}
}

// code writes the code section. It goes straight to the output, behind a
// length of fixed width.
func (w *rewriter) code() error {
	const width = 5
	w.out = append(w.out, secCode)
	start := len(w.out)
	w.out = append(w.out, make([]byte, width)...)
	w.out = appendU32(w.out, uint32(len(w.bodies))) //nolint:gosec // counts fit
	s := scanner{m: w.module, cfg: w.cfg}
	for i := range w.bodies {
		if err := s.scan(i); err != nil {
			return err
		}
		w.payload = s.emit(w.payload[:0])
		w.out = appendU32(w.out, uint32(len(w.payload))) //nolint:gosec // counts fit
		w.out = append(w.out, w.payload...)
	}
	size := uint64(len(w.out) - start - width) //nolint:gosec // not negative
	for i := range width {
		w.out[start+i] = byte(size>>(7*i)) | 0x80
	}
	w.out[start+width-1] &^= 0x80
	return nil
}

// custom writes a custom section. Those that hold offsets into the code are
// left out.
func (w *rewriter) custom(s *section) {
	switch {
	case strings.HasPrefix(s.name, ".debug_"), strings.HasPrefix(s.name, "reloc."), strings.HasPrefix(s.name, "metadata.code."),
		s.name == "linking", s.name == "sourceMappingURL", s.name == "external_debug_info":
		w.dropped = append(w.dropped, s.name)
	default:
		w.out = append(w.out, w.wasm[s.start:s.end]...)
	}
}

// customSection writes a custom section whose content is in payload.
func (w *rewriter) customSection(name string) {
	size := uint64(len(w.payload) + len(name) + len(binary.AppendUvarint(nil, uint64(len(name)))))
	w.out = binary.AppendUvarint(append(w.out, secCustom), size)
	w.out = append(appendName(w.out, name), w.payload...)
}
