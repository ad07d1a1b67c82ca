// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"encoding/binary"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// Section ids of the binary format.
const (
	customSection = 0
	typeSection   = 1
	importSection = 2
	funcSection   = 3
	tableSection  = 4
	memorySection = 5
	globalSection = 6
	exportSection = 7
	startSection  = 8
	codeSection   = 10
	dataSection   = 11
)

// sectionNames are those of sections that begin with a number of entries.
var sectionNames = map[byte]string{
	typeSection: "type", importSection: "import", funcSection: "function", tableSection: "table", memorySection: "memory",
	globalSection: "global", exportSection: "export", codeSection: "code", dataSection: "data",
}

// binaryModule is a module that is written byte by byte: what each section holds.
// Entries of a vector are apart from each other.
type binaryModule struct {
	types, imports, funcs, tables, memories, globals, exports, bodies, data [][]byte
	// behind stands at the end, as it is.
	behind []byte
}

// plain is a module that awaits a change, with three functions: the marker,
// buffer and reconcile. More stand behind these.
func plain() *binaryModule {
	return &binaryModule{
		types:    [][]byte{{0x60, 0, 0}, {0x60, 1, 0x7f, 1, 0x7f}, {0x60, 2, 0x7f, 0x7f, 1, 0x7e}},
		funcs:    [][]byte{{0}, {1}, {2}},
		memories: [][]byte{{0, 1}},
		exports: [][]byte{
			export("memory", 2, 0), export(abi.ExportMarker, 0, 0), export(abi.ExportBuffer, 0, 1), export(abi.ExportReconcile, 0, 2),
		},
		bodies: [][]byte{body(), body(0x41, 0x80, 0x08), body(0x42, 0)},
	}
}

// importing adds a function that is imported; those of the module move by one.
func (m *binaryModule) importing(module, name string, params, results []byte) {
	m.types = append(m.types, slices.Concat([]byte{0x60}, sized(params), sized(results)))
	m.imports = append(m.imports, slices.Concat(text(module), text(name), []byte{0, byte(len(m.types) - 1)}))
	for i := range m.exports[1:] {
		m.exports[1+i][len(m.exports[1+i])-1]++
	}
}

func export(name string, kind, index byte) []byte { return append(text(name), kind, index) }

// body is a function without locals.
func body(code ...byte) []byte { return sized(append(append([]byte{0}, code...), 0x0b)) }

// bodyOf returns a function with n locals of type i64.
func bodyOf(locals uint32, code ...byte) []byte {
	return sized(append(append(binary.AppendUvarint([]byte{1}, uint64(locals)), 0x7e), append(code, 0x0b)...))
}

func text(s string) []byte { return sized([]byte(s)) }

func sized(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// section is one section as it stands in a module.
func section(id byte, payload []byte) []byte { return append([]byte{id}, sized(payload)...) }

// vector is entries behind their number, or behind another that is claimed.
func vector(entries [][]byte) []byte { return claims(uint64(len(entries)), entries) }

func claims(n uint64, entries [][]byte) []byte {
	return append(binary.AppendUvarint(nil, n), slices.Concat(entries...)...)
}

func header() []byte { return []byte("\x00asm\x01\x00\x00\x00") }

// bytes is the module.
func (m *binaryModule) bytes() []byte {
	out := header()
	for _, s := range []struct {
		id      byte
		entries [][]byte
	}{
		{typeSection, m.types},
		{importSection, m.imports},
		{funcSection, m.funcs},
		{tableSection, m.tables},
		{memorySection, m.memories},
		{globalSection, m.globals},
		{exportSection, m.exports},
		{codeSection, m.bodies},
		{dataSection, m.data},
	} {
		if len(s.entries) > 0 {
			out = append(out, section(s.id, vector(s.entries))...)
		}
	}
	return append(out, m.behind...)
}

// with returns a function that makes the plain module with a change.
func with(edit func(m *binaryModule)) func() []byte {
	return func() []byte {
		m := plain()
		edit(m)
		return m.bytes()
	}
}

// ending returns a function that makes the plain module with more bytes.
func ending(b ...byte) func() []byte {
	return with(func(m *binaryModule) { m.behind = b })
}

// only returns a function that makes a header and these bytes.
func only(b ...byte) func() []byte { return func() []byte { return append(header(), b...) } }

// repeat is n times the same entry.
func repeat(n int, entry []byte) [][]byte { return slices.Repeat([][]byte{entry}, n) }

// names is a name section: its parts as they are.
func names(parts ...[]byte) []byte {
	return section(customSection, append(text("name"), slices.Concat(parts...)...))
}

// manifest is a manifest section.
func manifest(msg string) []byte {
	return section(customSection, append(text(abi.ManifestSection), msg...))
}
