// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"bytes"
	"errors"
	"strings"

	"github.com/wasmctl/wasmctl/host/internal/binary"
)

// rank is the required order of sections. Custom sections may be anywhere.
var rank = [...]int{
	binary.SectionCustom: 0, binary.SectionType: 1, binary.SectionImport: 2, binary.SectionFunction: 3, binary.SectionTable: 4,
	binary.SectionMemory: 5, binary.SectionTag: 6, binary.SectionGlobal: 7, binary.SectionExport: 8, binary.SectionStart: 9, binary.SectionElement: 10, binary.SectionDataCount: 11, binary.SectionCode: 12, binary.SectionData: 13,
}

// signature is the part of a function type that metering needs.
type signature struct {
	params, paramBytes, resultBytes int
}

// module is the information about a module.
type module struct {
	wasm     []byte
	sections []binary.Section
	types    []signature
	funcs    []uint32 // type of each function, imported ones first
	imported int      // functions that are imported
	globals  int
	bodies   []body // of the functions that the module defines
	voidType int    // the type () -> (), or -1
	slack    int64  // 0 with Config.Exact
	framer   framer
	paths    paths
	widest   int   // parameters and results of the widest type
	work     int64 // Output.Work
	// mutable are the globals that the module defines and can change. otherwise reports whether it
	// has other state in addition to these and its memory. Both are known after the code was read.
	mutable   []uint32
	otherwise bool
	segments  bool // Output.Segments
}

// parse reads everything except the code.
func parse(wasm []byte) (*module, error) {
	if !bytes.HasPrefix(wasm, []byte(binary.Header)) {
		return nil, errors.New("not a WebAssembly module of version 1")
	}
	m := &module{wasm: wasm, voidType: -1}
	if err := m.split(); err != nil {
		return nil, err
	}
	for i := range m.sections {
		s := &m.sections[i]
		r := s.Body
		switch s.ID {
		case binary.SectionType:
			m.readTypes(&r)
		case binary.SectionImport:
			m.readImports(&r)
		case binary.SectionFunction:
			r.Each(m.addFunc)
		case binary.SectionGlobal:
			m.readGlobals(r)
			continue // rewritten, and read completely, later
		case binary.SectionExport:
			m.checkExports(&r)
		case binary.SectionDataCount:
			r.U32() // wazero accepts an empty one if nothing follows
		default:
			continue
		}
		if err := r.End(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// split finds the sections.
func (m *module) split() (err error) {
	if m.sections, err = binary.Sections(m.wasm); err != nil {
		return err
	}
	last := 0
	for i := range m.sections {
		s := &m.sections[i]
		if s.ID == binary.SectionCustom {
			continue
		}
		if rank[s.ID] <= last {
			return binary.Errorf(s.Start, "section %s is out of order", s)
		}
		last = rank[s.ID]
	}
	return nil
}

func (m *module) readTypes(r *binary.Reader) {
	for n := r.Count(); n > 0 && r.OK(); n-- {
		if form := r.Byte(); form != binary.FormFunc {
			r.Failf("type form %#x is not a function type", form)
		}
		params, results := r.Block(), r.Block()
		t := signature{params: len(params.Rest()), paramBytes: slotBytes(params.Rest()), resultBytes: slotBytes(results.Rest())}
		m.widest = max(m.widest, len(params.Rest())+len(results.Rest()))
		if m.voidType < 0 && len(params.Rest())+len(results.Rest()) == 0 {
			m.voidType = len(m.types)
		}
		m.types = append(m.types, t)
	}
}

// slotBytes returns the native stack size of values of these types.
func slotBytes(types []byte) int {
	return 8*len(types) + 8*bytes.Count(types, []byte{typeV128})
}

func (m *module) readImports(r *binary.Reader) {
	for n := r.Count(); n > 0 && r.OK(); n-- {
		from := r.Name()
		r.Name()
		if from == ImportModule {
			r.Failf("module imports from %q, which is reserved for the host", ImportModule)
		}
		switch kind := r.Byte(); kind {
		case binary.KindFunc:
			m.addFunc(r)
			m.imported++
		case binary.KindTable:
			r.Byte()
			r.Limits()
		case binary.KindMemory:
			r.Limits()
		case binary.KindGlobal:
			r.Skip(2)
			m.globals++
		default:
			r.Failf("import kind %d is not supported", kind)
		}
	}
}

func (m *module) addFunc(r *binary.Reader) {
	t := r.U32()
	m.checkType(r, int64(t))
	m.funcs = append(m.funcs, t)
}

func (m *module) checkExports(r *binary.Reader) {
	for n := r.Count(); n > 0 && r.OK(); n-- {
		name := r.Name()
		if name == FuelGlobal || name == StackGlobal || strings.HasPrefix(name, GlobalPrefix) {
			r.Failf("module exports %q, which is reserved for the host", name)
		}
		kind, idx := r.Byte(), r.U32()
		switch kind {
		case binary.KindFunc:
			m.checkFunc(r, idx)
		case binary.KindGlobal:
			m.checkGlobal(r, idx)
		case binary.KindTable, binary.KindMemory:
		default:
			r.Failf("export kind %d is not supported", kind)
		}
	}
}

// The rewritten module has one more function, two more globals and perhaps one more type. These
// checks ensure that indices that were out of range stay so.

func (m *module) checkType(r *binary.Reader, t int64) {
	if t >= int64(len(m.types)) {
		r.Failf("type %d does not exist", t)
	}
}

func (m *module) checkFunc(r *binary.Reader, idx uint32) {
	if int64(idx) >= int64(len(m.funcs)) {
		r.Failf("function %d does not exist", idx)
	}
}

func (m *module) checkGlobal(r *binary.Reader, idx uint32) {
	if int64(idx) >= int64(m.globals) {
		r.Failf("global %d does not exist", idx)
	}
}

// shift returns the index of a function in the rewritten module, which has one more import before
// the module's own functions.
func (m *module) shift(idx uint32) uint32 {
	if int64(idx) >= int64(m.imported) {
		return idx + 1
	}
	return idx
}

// Indices of the additions.
func (m *module) refillFunc() uint32  { return uint32(m.imported) }    //nolint:gosec // counts fit
func (m *module) fuelGlobal() uint32  { return uint32(m.globals) }     //nolint:gosec // counts fit
func (m *module) stackGlobal() uint32 { return uint32(m.globals) + 1 } //nolint:gosec // counts fit
