// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
)

// kindNames are the names of the kinds of imports and exports.
var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

// Module is the content of a module's sections except for its code. It is read before
// wazero sees the bytes, so that nothing has to be compiled to look at a module, and so
// that counts without the bytes to back them are found first.
type Module struct {
	wasm       []byte
	digests    *digests     // nil before they are needed
	controller string       // the controller, of several, as which the module runs; empty if not known
	decoded    *manifestSet // nil before manifests

	sections []binary.Section
	types    []abi.FuncType
	imports  []imported
	funcs    []uint32 // type of each function, imported ones first
	tables   []table
	memories []binary.Limits
	exports  []exported
	files    *wasi.Files
	fileList []Section // what they are
	start    bool
	locals   uint64 // of all functions
	globals  int    // defined ones
	elements int    // entries of all element segments
	segments int    // element segments and passive data segments
}

type imported struct {
	module, name string
	kind         byte
	typ          abi.FuncType // of a function
}

type exported struct {
	name string
	kind byte
	typ  abi.FuncType // of a function
}

type table struct {
	binary.Limits
	elem byte // the type of its entries
}

// parseModule reads a module. With an error it returns the part that it could read.
func parseModule(b []byte) (*Module, error) {
	m := &Module{wasm: b, files: &wasi.Files{}}
	var err error
	m.sections, err = binary.Sections(b)
	for i := range m.sections {
		s := &m.sections[i]
		r := s.Body
		r.Fail(checkCount(s.ID, r))
		if err := m.parseSection(s, r); err != nil {
			return m, err
		}
	}
	return m, err
}

// parseForm reads the imports and the files of a form that is compiled. It does not check
// the bounds of a module: they hold without the code that counts its work.
func parseForm(form []byte) (*Module, error) {
	m := &Module{wasm: form, files: &wasi.Files{}}
	var err error
	m.sections, err = binary.Sections(form)
	for i := range m.sections {
		if s := &m.sections[i]; s.ID == binary.SectionType || s.ID == binary.SectionImport || s.ID == binary.SectionCustom && s.Name == abi.FilesSection {
			err = errors.Join(err, m.parseSection(s, s.Body))
		}
	}
	return m, err
}

func (m *Module) parseSection(s *binary.Section, r binary.Reader) error {
	switch s.ID {
	case binary.SectionCustom:
		switch s.Name {
		case "name":
			checkNames(&r)
		case abi.FilesSection:
			m.parseFiles(&r)
		}
	case binary.SectionType:
		r.Each(m.parseType)
	case binary.SectionImport:
		r.Each(m.parseImport)
	case binary.SectionFunction:
		r.Each(func(r *binary.Reader) { m.funcs = append(m.funcs, r.U32()) })
	case binary.SectionTable:
		r.Each(m.parseTable)
	case binary.SectionMemory:
		r.Each(m.parseMemory)
	case binary.SectionGlobal:
		m.globals = r.Count()
	case binary.SectionExport:
		r.Each(m.parseExport)
	case binary.SectionStart:
		m.start = true
	case binary.SectionCode:
		r.Each(m.checkBody)
	case binary.SectionData:
		r.Each(m.checkData)
	case binary.SectionElement:
		r.Each(m.checkElement)
	}
	if !r.OK() {
		return fmt.Errorf("section %s: %w", s, errors.Unwrap(r.Err()))
	}
	return nil
}

func (m *Module) parseType(r *binary.Reader) {
	if form := r.Byte(); r.OK() && form != binary.FormFunc {
		r.Failf("type form %#x is not a function type; this host has no garbage-collected types", form)
	}
	params, results := r.Block(), r.Block()
	if params.Left() > maxParams || results.Left() > maxParams {
		r.Failf("function type has %d parameters and %d results, the limit is %d each", params.Left(), results.Left(), maxParams)
	}
	m.types = append(m.types, abi.FuncType{Params: valTypes(params.Rest()), Results: valTypes(results.Rest())})
}

func valTypes(b []byte) []abi.ValType {
	if len(b) == 0 {
		return nil
	}
	ts := make([]abi.ValType, len(b))
	for i, c := range b {
		ts[i] = abi.ValType(c)
	}
	return ts
}

func (m *Module) parseImport(r *binary.Reader) {
	imp := imported{module: r.Name(), name: r.Name(), kind: r.Byte()}
	switch imp.kind {
	case binary.KindFunc:
		idx := r.U32()
		m.funcs = append(m.funcs, idx)
		imp.typ = m.typeAt(r, idx)
	case binary.KindTable:
		m.parseTable(r)
	case binary.KindMemory:
		m.parseMemory(r)
	case binary.KindGlobal, binary.KindTag: // value type and mutability; attribute and type
		r.Byte()
		r.U32()
	default:
		r.Failf("import kind %d is unknown", imp.kind)
	}
	if r.OK() {
		m.imports = append(m.imports, imp)
	}
}

func (m *Module) parseTable(r *binary.Reader) {
	elem := r.Byte()
	if elem != 0x70 && elem != 0x6f {
		r.Failf("table of type %#x: this host has tables of funcref and externref only", elem)
	}
	m.tables = append(m.tables, table{readLimits(r), elem})
}

func (m *Module) parseMemory(r *binary.Reader) { m.memories = append(m.memories, readLimits(r)) }

func (m *Module) parseExport(r *binary.Reader) {
	e := exported{name: r.Name(), kind: r.Byte()}
	if int(e.kind) >= len(kindNames) {
		r.Failf("export kind %d is unknown", e.kind)
	}
	idx := r.U32()
	if e.kind == binary.KindFunc && r.OK() {
		if int64(idx) >= int64(len(m.funcs)) {
			r.Failf("function %d does not exist", idx)
		} else {
			e.typ = m.typeAt(r, m.funcs[idx])
		}
	}
	if r.OK() {
		m.exports = append(m.exports, e)
	}
}

func (m *Module) typeAt(r *binary.Reader, idx uint32) (t abi.FuncType) {
	if int64(idx) < int64(len(m.types)) {
		return m.types[idx]
	}
	r.Failf("type %d does not exist", idx)
	return t
}

// readLimits reads the size of a memory or table.
func readLimits(r *binary.Reader) binary.Limits {
	l := r.Limits()
	if l.Shared {
		r.Failf("shared memory is not supported: build without threads")
	}
	return l
}

// export returns the export with a name.
func (m *Module) export(name string) (exported, bool) {
	for _, e := range m.exports {
		if e.name == name {
			return e, true
		}
	}
	return exported{}, false
}

// Exports reports whether a function of this name is exported.
func (m *Module) Exports(name string) bool {
	e, ok := m.export(name)
	return ok && e.kind == binary.KindFunc
}

// manifestSections returns the payloads of the manifest sections. A module with several
// controllers has one for each.
func (m *Module) manifestSections() [][]byte {
	var out [][]byte
	for _, s := range m.sections {
		if s.ID == binary.SectionCustom && s.Name == abi.ManifestSection {
			out = append(out, s.Body.Rest())
		}
	}
	return out
}
