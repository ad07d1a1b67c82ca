package host

import (
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
)

// kindNames name the kinds of what a module imports and exports.
var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

// binaryModule is what a module's sections say without its code. It is read
// before wazero sees the bytes, so that nothing has to be compiled to look at
// a module, and so that counts which the bytes do not back are found first.
type binaryModule struct {
	digest, codeDigest string       // of the bytes, and of what is compiled; empty before digestOf
	controller         string       // which of several the module runs as; "" before that is known
	decoded            *manifestSet // nil before manifests

	sections []binary.Section
	types    []abi.FuncType
	imports  []wasmImport
	funcs    []uint32 // type of each function, imported ones first
	tables   []wasmTable
	memories []binary.Limits
	exports  []wasmExport
	files    *wasi.Files
	fileList []Section // what they are
	start    bool
	locals   uint64 // of all functions
}

type wasmImport struct {
	module, name string
	kind         byte
	typ          abi.FuncType // of a function
}

type wasmExport struct {
	name string
	kind byte
	typ  abi.FuncType // of a function
}

type wasmTable struct {
	binary.Limits
	elem byte // the type of its entries
}

// parseModule reads a module. On an error it returns what it has read before.
func parseModule(b []byte) (*binaryModule, error) {
	m := &binaryModule{files: &wasi.Files{}}
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

// parseForm reads what a module imports and its files, of a form that is compiled: the
// bounds hold for the module, and what counts its work is in addition to that.
func parseForm(form []byte) (*binaryModule, error) {
	m := &binaryModule{files: &wasi.Files{}}
	var err error
	m.sections, err = binary.Sections(form)
	for i := range m.sections {
		if s := &m.sections[i]; s.ID == binary.SectionType || s.ID == binary.SectionImport || s.ID == binary.SectionCustom && s.Name == abi.FilesSection {
			err = errors.Join(err, m.parseSection(s, s.Body))
		}
	}
	return m, err
}

func (m *binaryModule) parseSection(s *binary.Section, r binary.Reader) error {
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
	case binary.SectionExport:
		r.Each(m.parseExport)
	case binary.SectionStart:
		m.start = true
	case binary.SectionCode:
		r.Each(m.checkBody)
	case binary.SectionData:
		r.Each(checkData)
	case binary.SectionElement:
		r.Each(checkElement)
	}
	if !r.OK() {
		return fmt.Errorf("section %s: %w", s, errors.Unwrap(r.Err()))
	}
	return nil
}

func (m *binaryModule) parseType(r *binary.Reader) {
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

func (m *binaryModule) parseImport(r *binary.Reader) {
	imp := wasmImport{module: r.Name(), name: r.Name(), kind: r.Byte()}
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

func (m *binaryModule) parseTable(r *binary.Reader) {
	elem := r.Byte()
	if elem != 0x70 && elem != 0x6f {
		r.Failf("table of type %#x: this host has tables of funcref and externref only", elem)
	}
	m.tables = append(m.tables, wasmTable{limits(r), elem})
}

func (m *binaryModule) parseMemory(r *binary.Reader) { m.memories = append(m.memories, limits(r)) }

func (m *binaryModule) parseExport(r *binary.Reader) {
	e := wasmExport{name: r.Name(), kind: r.Byte()}
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

func (m *binaryModule) typeAt(r *binary.Reader, idx uint32) (t abi.FuncType) {
	if int64(idx) < int64(len(m.types)) {
		return m.types[idx]
	}
	r.Failf("type %d does not exist", idx)
	return t
}

// limits reads the size of a memory or table.
func limits(r *binary.Reader) binary.Limits {
	l := r.Limits()
	if l.Shared {
		r.Failf("shared memory is not supported: build without threads")
	}
	return l
}

// export returns the export of a name.
func (m *binaryModule) export(name string) (wasmExport, bool) {
	for _, e := range m.exports {
		if e.name == name {
			return e, true
		}
	}
	return wasmExport{}, false
}

// exportsFunc reports whether a function of this name is exported.
func (m *binaryModule) exportsFunc(name string) bool {
	e, ok := m.export(name)
	return ok && e.kind == binary.KindFunc
}

// manifestSections returns the payloads of the manifest sections: one, or one for
// each controller of several.
func (m *binaryModule) manifestSections() [][]byte {
	var out [][]byte
	for _, s := range m.sections {
		if s.ID == binary.SectionCustom && s.Name == abi.ManifestSection {
			out = append(out, s.Body.Rest())
		}
	}
	return out
}
