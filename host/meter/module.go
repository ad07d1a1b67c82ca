package meter

import (
	"bytes"
	"fmt"
)

// Section ids of the binary format.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	secTag
)

// rank is the order in which sections must come; custom ones may be anywhere.
var rank = [...]int{
	secCustom: 0, secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secTag: 6, secGlobal: 7,
	secExport: 8, secStart: 9, secElement: 10, secDataCount: 11, secCode: 12, secData: 13,
}

// Kinds of imports and exports.
const (
	kindFunc = iota
	kindTable
	kindMemory
	kindGlobal
	kindTag
)

const headerSize = 8

var header = []byte("\x00asm\x01\x00\x00\x00")

// section is one section. start and end enclose all of it.
type section struct {
	id         byte
	name       string // of a custom section
	body       reader // after the name
	start, end int
}

// signature is what metering needs of a function type.
type signature struct {
	params, paramBytes, resultBytes int
	void                            bool // () -> ()
}

// module is what is known of a module.
type module struct {
	wasm     []byte
	sections []section
	types    []signature
	funcs    []uint32 // type of each function, imported ones first
	imported int      // functions that are imported
	globals  int
	bodies   []body // of the functions that are not imported
	voidType int    // the type () -> (), or -1
	slack    int64  // Config.Slack
}

// parse reads all but the code.
func parse(wasm []byte) (*module, error) {
	if !bytes.HasPrefix(wasm, header) {
		return nil, fmt.Errorf("meter: not a WebAssembly module of version 1")
	}
	m := &module{wasm: wasm, voidType: -1}
	if err := m.split(); err != nil {
		return nil, err
	}
	for i := range m.sections {
		s := &m.sections[i]
		r := s.body
		switch s.id {
		case secType:
			m.readTypes(&r)
		case secImport:
			m.readImports(&r)
		case secFunction:
			for n := r.count(); n > 0 && r.err == nil; n-- {
				m.addFunc(&r)
			}
		case secGlobal:
			m.globals += r.count()
			continue // rewritten, and read wholly, later
		case secExport:
			m.checkExports(&r)
		case secDataCount:
			r.u32() // wazero takes an empty one, if nothing comes behind it
		default:
			continue
		}
		if err := r.end(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// split finds the sections.
func (m *module) split() error {
	r := reader{b: m.wasm, pos: headerSize}
	last := 0
	for r.pos < len(m.wasm) && r.err == nil {
		s := section{start: r.pos}
		s.id = r.byte()
		if int(s.id) >= len(rank) {
			return failf(s.start, "section id %d is unknown", s.id)
		}
		s.body = r.block()
		s.end = r.pos
		if s.id == secCustom {
			s.name = s.body.name()
			if r.err == nil {
				r.err = s.body.err
			}
		} else if rank[s.id] <= last {
			return failf(s.start, "section %d is out of order", s.id)
		} else {
			last = rank[s.id]
		}
		m.sections = append(m.sections, s)
	}
	return r.err
}

func (m *module) readTypes(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != typeFunc {
			r.failf("type form %#x is not a function type", form)
		}
		params, results := r.block(), r.block()
		t := signature{params: len(params.b), paramBytes: slotBytes(params.b), resultBytes: slotBytes(results.b)}
		if t.void = len(params.b)+len(results.b) == 0; t.void && m.voidType < 0 {
			m.voidType = len(m.types)
		}
		m.types = append(m.types, t)
	}
}

// slotBytes is what values of these types take on the native stack.
func slotBytes(types []byte) int {
	return 8*len(types) + 8*bytes.Count(types, []byte{typeV128})
}

func (m *module) readImports(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		from := r.name()
		r.name()
		if from == ImportModule {
			r.failf("module imports from %q, which is the host's own", ImportModule)
		}
		switch kind := r.byte(); kind {
		case kindFunc:
			m.addFunc(r)
			m.imported++
		case kindTable:
			r.byte()
			r.limits()
		case kindMemory:
			r.limits()
		case kindGlobal:
			r.skip(2)
			m.globals++
		default:
			r.failf("import kind %d is not supported", kind)
		}
	}
}

// limits reads over the size of a memory or table.
func (r *reader) limits() {
	flags := r.byte()
	if flags > 3 { // 2 is shared memory
		r.failf("flags %#x of a memory or table are not supported", flags)
	}
	r.u32()
	if flags&1 != 0 {
		r.u32()
	}
}

func (m *module) addFunc(r *reader) {
	t := r.u32()
	if int64(t) >= int64(len(m.types)) {
		r.failf("type %d does not exist", t)
	}
	m.funcs = append(m.funcs, t)
}

func (m *module) checkExports(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		name := r.name()
		if name == FuelGlobal || name == StackGlobal {
			r.failf("module exports %q, which is the host's own", name)
		}
		kind, idx := r.byte(), r.u32()
		switch kind {
		case kindFunc:
			m.checkFunc(r, idx)
		case kindGlobal:
			m.checkGlobal(r, idx)
		case kindTable, kindMemory:
		default:
			r.failf("export kind %d is not supported", kind)
		}
	}
}

// The rewritten module has one function, two globals and perhaps one type
// more. These checks keep what was out of range out of range.

func (m *module) checkFunc(r *reader, idx uint32) {
	if int64(idx) >= int64(len(m.funcs)) {
		r.failf("function %d does not exist", idx)
	}
}

func (m *module) checkGlobal(r *reader, idx uint32) {
	if int64(idx) >= int64(m.globals) {
		r.failf("global %d does not exist", idx)
	}
}

// shift returns the index of a function in the rewritten module, where one
// import more comes before the functions that the module defines.
func (m *module) shift(idx uint32) uint32 {
	if int64(idx) >= int64(m.imported) {
		return idx + 1
	}
	return idx
}

// Indices of what is added.
func (m *module) refillFunc() uint32  { return uint32(m.imported) }    //nolint:gosec // counts fit
func (m *module) fuelGlobal() uint32  { return uint32(m.globals) }     //nolint:gosec // counts fit
func (m *module) stackGlobal() uint32 { return uint32(m.globals) + 1 } //nolint:gosec // counts fit
