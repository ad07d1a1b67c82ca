package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
)

// The first eight bytes of a core module and of a component.
var (
	magic         = []byte("\x00asm")
	versionModule = []byte{1, 0, 0, 0}
	layerComp     = []byte{1, 0} // after two bytes of the component format's own version
)

const headerSize = 8

// Section ids of the binary format.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sectionTag
)

var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count", "tag",
}

var errTruncated = errors.New("ends too early: the file is truncated or damaged")

// section is one section of a module. start and end enclose all of it, the
// payload and, for a custom section, its name included.
type section struct {
	id         byte
	name       string // of a custom section
	payload    []byte // after the name
	start, end int
}

func (s *section) String() string {
	if s.id == sectionCustom {
		return "custom " + s.name
	}
	return sectionNames[s.id]
}

// checkHeader says what is wrong with the first bytes.
func checkHeader(b []byte) error {
	switch {
	case len(b) == 0:
		return errors.New("is empty")
	case !bytes.HasPrefix(b, magic):
		return errors.New("is not WebAssembly: the first bytes are not \\0asm (is it the .wasm file, and not source, text format or an archive?)")
	case len(b) < headerSize:
		return errTruncated
	case bytes.Equal(b[6:8], layerComp):
		return errors.New("is a component; wasmctl takes core modules: build for wasm32-wasip1 or wasm32-unknown-unknown without componentizing it")
	case !bytes.Equal(b[4:8], versionModule):
		return fmt.Errorf("is WebAssembly of version %d; wasmctl takes version 1", binary.LittleEndian.Uint32(b[4:8]))
	}
	return nil
}

// splitSections splits a module. On an error it returns the sections before
// it.
func splitSections(b []byte) ([]section, error) {
	if err := checkHeader(b); err != nil {
		return nil, err
	}
	var out []section
	r := wasmReader{b: b, pos: headerSize}
	for r.pos < len(b) {
		if len(out) == maxSections {
			return out, fmt.Errorf("has more than %d sections", maxSections)
		}
		s := section{start: r.pos}
		var err error
		if s.id, err = r.byte(); err != nil {
			return out, err
		}
		if int(s.id) >= len(sectionNames) {
			return out, fmt.Errorf("section id %d at byte %d is unknown", s.id, s.start)
		}
		if s.payload, err = r.block(); err != nil {
			return out, fmt.Errorf("section %s at byte %d: %w", sectionNames[s.id], s.start, err)
		}
		s.end = r.pos
		if s.id == sectionCustom {
			pr := wasmReader{b: s.payload}
			if s.name, err = pr.name(); err != nil {
				return out, fmt.Errorf("section custom at byte %d: %w", s.start, err)
			}
			s.payload = s.payload[pr.pos:]
		}
		out = append(out, s)
	}
	return out, nil
}

// WithManifest returns a copy of a module whose manifest section holds m;
// sections of that name that were there are left out. Everything else stays
// byte for byte. The same module and manifest give the same bytes.
func WithManifest(wasm []byte, m *abi.Manifest) ([]byte, error) {
	sections, err := splitSections(wasm)
	if err != nil {
		return nil, invalid("manifest", err)
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	msg, err := abi.EncodeManifest(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	out := append(make([]byte, 0, len(wasm)+len(msg)+64), wasm[:headerSize]...)
	for _, s := range sections {
		if s.id != sectionCustom || s.name != abi.ManifestSection {
			out = append(out, wasm[s.start:s.end]...)
		}
	}
	payload := binary.AppendUvarint(nil, uint64(len(abi.ManifestSection)))
	payload = append(append(payload, abi.ManifestSection...), msg...)
	return appendSection(out, sectionCustom, payload), nil
}

func appendSection(dst []byte, id byte, payload []byte) []byte {
	dst = binary.AppendUvarint(append(dst, id), uint64(len(payload)))
	return append(dst, payload...)
}

// wasmReader reads the binary format front to back. It returns an error for
// whatever the bytes say, and never allocates by a length that they do not
// back.
type wasmReader struct {
	b   []byte
	pos int
}

func (r *wasmReader) left() int { return len(r.b) - r.pos }

func (r *wasmReader) byte() (byte, error) {
	if r.left() == 0 {
		return 0, errTruncated
	}
	r.pos++
	return r.b[r.pos-1], nil
}

// u32 reads an unsigned number in LEB128 of at most 32 bits.
func (r *wasmReader) u32() (uint32, error) {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c, err := r.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v), nil
		}
	}
	return 0, fmt.Errorf("number at byte %d is longer than 32 bits", r.pos)
}

// count reads the length of a vector whose elements take a byte at least.
func (r *wasmReader) count() (int, error) {
	n, err := r.u32()
	if err == nil && int64(n) > int64(r.left()) {
		return 0, errTruncated
	}
	return int(n), err
}

// block reads a length and that many bytes, as a view.
func (r *wasmReader) block() ([]byte, error) {
	n, err := r.count()
	if err != nil {
		return nil, err
	}
	r.pos += n
	return r.b[r.pos-n : r.pos], nil
}

func (r *wasmReader) name() (string, error) {
	b, err := r.block()
	if err == nil && !utf8.Valid(b) {
		return "", fmt.Errorf("name at byte %d is not UTF-8", r.pos)
	}
	return string(b), err
}
