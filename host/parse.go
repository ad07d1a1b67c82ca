package host

import (
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
)

// Kinds of what a module imports and exports, in the encoding of the binary
// format.
const (
	kindFunc = iota
	kindTable
	kindMemory
	kindGlobal
	kindTag
)

var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

// binaryModule is what a module's sections say without its code. It is read
// before wazero sees the bytes, so that nothing has to be compiled to look at
// a module, and so that counts which the bytes do not back are found first.
type binaryModule struct {
	sections []section
	types    []abi.FuncType
	imports  []wasmImport
	funcs    []uint32 // type of each function, imported ones first
	tables   []limits
	memories []limits
	exports  []wasmExport
	start    bool
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

// limits are the size of a memory, in pages, or of a table, in entries.
type limits struct {
	min, max uint32
	hasMax   bool
	// elem is the type of a table's entries.
	elem byte
}

// parseModule reads a module. On an error it returns what it has read before.
func parseModule(b []byte) (*binaryModule, error) {
	m := &binaryModule{}
	var err error
	m.sections, err = splitSections(b)
	for i := range m.sections {
		s := &m.sections[i]
		r := &wasmReader{b: s.payload}
		err := checkCount(s.id, s.payload)
		if err == nil {
			err = m.parseSection(s.id, r)
		}
		if s.id == sectionCustom && s.name == "name" {
			err = checkNames(r)
		}
		if err != nil {
			return m, fmt.Errorf("section %s: %w", s, err)
		}
	}
	return m, err
}

func (m *binaryModule) parseSection(id byte, r *wasmReader) error {
	switch id {
	case sectionType:
		return r.each(m.parseType)
	case sectionImport:
		return r.each(m.parseImport)
	case sectionFunction:
		return r.each(func(r *wasmReader) error {
			idx, err := r.u32()
			m.funcs = append(m.funcs, idx)
			return err
		})
	case sectionTable:
		return r.each(m.parseTable)
	case sectionMemory:
		return r.each(func(r *wasmReader) error {
			l, err := r.limits()
			m.memories = append(m.memories, l)
			return err
		})
	case sectionExport:
		return r.each(m.parseExport)
	case sectionStart:
		m.start = true
	case sectionCode:
		return r.each(checkBody)
	case sectionData:
		return r.each(checkData)
	case sectionElement:
		return r.each(checkElement)
	case sectionGlobal, sectionTag:
		_, err := r.count() // the rest is wazero's to check
		return err
	}
	return nil
}

// each reads a vector.
func (r *wasmReader) each(f func(*wasmReader) error) error {
	n, err := r.count()
	for i := 0; i < n && err == nil; i++ {
		if err = f(r); err != nil {
			err = fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return err
}

func (m *binaryModule) parseType(r *wasmReader) error {
	form, err := r.byte()
	if err != nil {
		return err
	}
	if form != 0x60 {
		return fmt.Errorf("type form %#x is not a function type; this host has no garbage-collected types", form)
	}
	params, err := r.block()
	if err != nil {
		return err
	}
	results, err := r.block()
	if err != nil {
		return err
	}
	if len(params) > maxParams || len(results) > maxParams {
		return fmt.Errorf("function type has %d parameters and %d results, the limit is %d each", len(params), len(results), maxParams)
	}
	m.types = append(m.types, abi.FuncType{Params: valTypes(params), Results: valTypes(results)})
	return nil
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

func (m *binaryModule) parseImport(r *wasmReader) (err error) {
	var imp wasmImport
	if imp.module, err = r.name(); err != nil {
		return err
	}
	if imp.name, err = r.name(); err != nil {
		return err
	}
	if imp.kind, err = r.byte(); err != nil {
		return err
	}
	if imp.typ, err = m.parseImportType(imp.kind, r); err != nil {
		return err
	}
	m.imports = append(m.imports, imp)
	return nil
}

func (m *binaryModule) parseImportType(kind byte, r *wasmReader) (t abi.FuncType, err error) {
	switch kind {
	case kindFunc:
		idx, err := r.u32()
		if err != nil {
			return t, err
		}
		m.funcs = append(m.funcs, idx)
		return m.typeAt(idx)
	case kindTable:
		return t, m.parseTable(r)
	case kindMemory:
		l, err := r.limits()
		m.memories = append(m.memories, l)
		return t, err
	case kindGlobal, kindTag: // value type and mutability; attribute and type
		if _, err = r.byte(); err == nil {
			_, err = r.u32()
		}
		return t, err
	}
	return t, fmt.Errorf("import kind %d is unknown", kind)
}

func (m *binaryModule) parseTable(r *wasmReader) error {
	elem, err := r.byte()
	if err != nil {
		return err
	}
	if elem != 0x70 && elem != 0x6f {
		return fmt.Errorf("table of type %#x: this host has tables of funcref and externref only", elem)
	}
	l, err := r.limits()
	l.elem = elem
	m.tables = append(m.tables, l)
	return err
}

func (m *binaryModule) parseExport(r *wasmReader) (err error) {
	var e wasmExport
	if e.name, err = r.name(); err != nil {
		return err
	}
	if e.kind, err = r.byte(); err != nil {
		return err
	}
	if int(e.kind) >= len(kindNames) {
		return fmt.Errorf("export kind %d is unknown", e.kind)
	}
	idx, err := r.u32()
	if err != nil {
		return err
	}
	if e.kind == kindFunc {
		if int64(idx) >= int64(len(m.funcs)) {
			return fmt.Errorf("function %d does not exist", idx)
		}
		if e.typ, err = m.typeAt(m.funcs[idx]); err != nil {
			return err
		}
	}
	m.exports = append(m.exports, e)
	return nil
}

func (m *binaryModule) typeAt(idx uint32) (abi.FuncType, error) {
	if int64(idx) >= int64(len(m.types)) {
		return abi.FuncType{}, fmt.Errorf("type %d does not exist", idx)
	}
	return m.types[idx], nil
}

// limits reads the size of a memory or table.
func (r *wasmReader) limits() (l limits, err error) {
	flags, err := r.byte()
	if err != nil {
		return l, err
	}
	switch {
	case flags&4 != 0:
		return l, errors.New("64-bit memories and tables are not supported")
	case flags&2 != 0:
		return l, errors.New("shared memory is not supported: build without threads")
	case flags > 1:
		return l, fmt.Errorf("flags %#x of a memory or table are unknown", flags)
	}
	if l.min, err = r.u32(); err != nil || flags == 0 {
		return l, err
	}
	l.hasMax = true
	l.max, err = r.u32()
	return l, err
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
	return ok && e.kind == kindFunc
}

// manifestSections returns the payloads of the manifest sections; there should
// be one at most.
func (m *binaryModule) manifestSections() [][]byte {
	var out [][]byte
	for _, s := range m.sections {
		if s.id == sectionCustom && s.name == abi.ManifestSection {
			out = append(out, s.payload)
		}
	}
	return out
}
