// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Header is how a module starts.
const Header = "\x00asm\x01\x00\x00\x00"

// layerComponent marks a component, after two bytes of its format's own version.
const layerComponent = "\x01\x00"

// Ids of sections.
const (
	SectionCustom = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
	SectionTag
)

var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count", "tag",
}

// Kinds of what a module imports and exports.
const (
	KindFunc = iota
	KindTable
	KindMemory
	KindGlobal
	KindTag
)

// FormFunc begins a function type.
const FormFunc = 0x60

// Ids of the parts of the name section that engines read.
const (
	NameOfModule     = 0
	NamesOfFunctions = 1
	NamesOfLocals    = 2
)

// maxSections bounds the sections of a module: each of two bytes takes many more
// once it is read.
const maxSections = 1_000

// Section is one section of a module. Start and End enclose all of it.
type Section struct {
	ID         byte
	Name       string // of a custom section
	Body       Reader // after the name
	Start, End int
}

// String returns the section's name for people.
func (s *Section) String() string {
	if s.ID == SectionCustom {
		return "custom " + s.Name
	}
	return sectionNames[s.ID]
}

// checkHeader says what is wrong with the first bytes.
func checkHeader(b []byte) error {
	switch {
	case len(b) == 0:
		return errors.New("is empty")
	case !bytes.HasPrefix(b, []byte(Header[:4])):
		return errors.New("is not WebAssembly: the first bytes are not \\0asm (is it the .wasm file, and not source, text format or an archive?)")
	case len(b) < len(Header):
		return ErrTruncated
	case string(b[6:8]) == layerComponent:
		return errors.New("is a component; wasmctl takes core modules: build for wasm32-wasip1 or wasm32-unknown-unknown without componentizing it")
	case string(b[:8]) != Header:
		return fmt.Errorf("is WebAssembly of version %d; wasmctl takes version 1", binary.LittleEndian.Uint32(b[4:8]))
	}
	return nil
}

// Sections splits a module. On an error it returns the sections before it.
func Sections(b []byte) ([]Section, error) {
	if err := checkHeader(b); err != nil {
		return nil, err
	}
	var out []Section
	r := Reader{b: b, pos: len(Header)}
	for r.Left() > 0 {
		if len(out) == maxSections {
			return out, fmt.Errorf("has more than %d sections", maxSections)
		}
		s := Section{Start: r.pos}
		s.ID = r.Byte()
		if int(s.ID) >= len(sectionNames) {
			return out, fmt.Errorf("section id %d at byte %d is unknown", s.ID, s.Start)
		}
		s.Body = r.Block()
		s.End = r.pos
		if s.ID == SectionCustom {
			s.Name = s.Body.Name()
		}
		if s.Body.err != nil {
			return out, fmt.Errorf("section %s at byte %d: %w", sectionNames[s.ID], s.Start, s.Body.err.Err)
		}
		out = append(out, s)
	}
	return out, nil
}
