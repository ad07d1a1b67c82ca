// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"unsafe"
)

// CapOpaque is the ability to take opaque JSON, among those of the host and in
// the manifest of a module (abi/ABI.md, section 9).
const CapOpaque = "opaque"

// opaqueType is the extension type of opaque JSON (abi/ABI.md, section 3).
const opaqueType = 1

// Caps is the list of the host's abilities in the request of the current call,
// or nil.
var Caps []byte

// takesOpaque reports whether the host accepts opaque JSON.
func takesOpaque() bool {
	for it := Walk(Caps); it.Next(); {
		if s, ok := StringBytes(it.Value); ok && string(s) == CapOpaque {
			return true
		}
	}
	return false
}

// AppendOpaque appends opaque JSON, which must be valid.
func AppendOpaque(dst, js []byte) []byte {
	switch n := len(js); {
	case n <= math.MaxUint8:
		dst = append(dst, 0xc7, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xc8), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xc9), uint32(n))
	}
	return append(append(dst, opaqueType), js...)
}

// opaqueText returns the JSON of the opaque value at the start of v, or nil.
func opaqueText(v []byte) []byte {
	size, payload, _, ok := head(v, 0)
	if !ok || payload > len(v)-size {
		return nil
	}
	return v[size : size+payload]
}

// Plain returns a view of the value at the start of v. Opaque JSON is decoded.
// If that fails, the result is nil.
func Plain(v []byte) []byte {
	if TypeOf(v) != Opaque {
		return v
	}
	plain, err := AppendJSON(nil, opaqueText(v))
	if err != nil {
		return nil
	}
	return plain
}

// plain advances past opaque JSON and returns a decoder of its content.
func (d *decoder) plain() (*decoder, error) {
	b, err := AppendJSON(nil, opaqueText(d.b[d.pos:]))
	d.skip()
	return &decoder{b: b, own: true, depth: d.depth}, err
}

// other decodes a value that does not have the expected type into the variable
// at. This is an error, unless the value is opaque JSON.
func (d *decoder) other(p *plan, at unsafe.Pointer) error {
	if TypeOf(d.b[d.pos:]) != Opaque {
		return d.mismatch(p.typ)
	}
	inner, err := d.plain()
	if err != nil {
		return err
	}
	return inner.into(p, at)
}

// opened is other after open has returned err or no entries.
func (d *decoder) opened(err error, p *plan, at unsafe.Pointer) error {
	if err != nil {
		return err
	}
	return d.other(p, at)
}

// planOpaque sets the plan of a type that holds the text of JSON. The host
// sends that text unchanged.
func planOpaque(p *plan, t reflect.Type) {
	p.byKind(t)
	p.byMethods(t)
	p.encode = encodeOpaque
}

func encodeOpaque(p *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	m, ok := p.pointerTo(at).(jsonMarshaler)
	if !ok {
		return nil, errors.New("Go type " + p.typ.String() + " has no MarshalJSON")
	}
	js, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	plain, err := AppendJSON(dst, js)
	if err != nil || TypeOf(plain[len(dst):]) == Nil || !takesOpaque() {
		return plain, err
	}
	return AppendOpaque(dst, js), nil
}
