// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"
)

// The Append functions write a value in its shortest form.

// AppendNil appends nil.
func AppendNil(dst []byte) []byte { return append(dst, 0xc0) }

// AppendBool appends a bool.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0xc3)
	}
	return append(dst, 0xc2)
}

// AppendInt appends an integer in the form that the host uses: unsigned from 0
// on, signed below.
func AppendInt(dst []byte, v int64) []byte {
	if v >= 0 {
		switch u := uint64(v); {
		case u <= 0x7f:
			return append(dst, byte(u))
		case u <= math.MaxUint8:
			return append(dst, 0xcc, byte(u))
		case u <= math.MaxUint16:
			return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(u))
		case u <= math.MaxUint32:
			return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(u))
		default:
			return binary.BigEndian.AppendUint64(append(dst, 0xcf), u)
		}
	}
	switch {
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, 0xd0, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
}

// AppendFloat appends a float64. It must be finite, because Check refuses other
// values.
func AppendFloat(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v))
}

// AppendString appends a string. It must be UTF-8, because Check refuses other
// strings.
func AppendString(dst []byte, s string) []byte {
	n, end := len(s), len(dst)
	if n <= 31 && n < cap(dst)-end { // true for most strings, especially keys
		dst = dst[:end+1+n]
		dst[end] = 0xa0 | byte(n)
		copy(dst[end+1:], s)
		return dst
	}
	switch {
	case n <= 31:
		dst = append(dst, 0xa0|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, 0xd9, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}

// AppendArray appends the header of an array; its n elements must follow.
func AppendArray(dst []byte, n int) []byte { return appendHead(dst, n, 0x90, 0xdc) }

// AppendMap appends the header of a map; its n keys and values must follow in
// turn.
func AppendMap(dst []byte, n int) []byte { return appendHead(dst, n, 0x80, 0xde) }

func appendHead(dst []byte, n int, fixed, wide byte) []byte {
	switch {
	case n <= 15:
		return append(dst, fixed|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, wide), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, wide+1), uint32(n))
}

// Builder writes a map whose number of keys is known only at the end.
type Builder struct {
	b     []byte
	start int
	n     int
}

// NewBuilder starts a map at the end of dst.
func NewBuilder(dst []byte) Builder {
	return Builder{b: append(dst, 0xde, 0, 0), start: len(dst)}
}

// key appends a key; its value must follow.
func (m *Builder) key(key string) {
	m.n++
	m.b = AppendString(m.b, key)
}

// String appends a key and a string, or nothing if it is empty.
func (m *Builder) String(key, v string) {
	if v != "" {
		m.key(key)
		m.b = AppendString(m.b, v)
	}
}

// Text appends a key and a string, even if the string is empty.
func (m *Builder) Text(key, v string) {
	m.key(key)
	m.b = AppendString(m.b, v)
}

// Texts appends pairs of keys and strings, without the pairs whose string is
// empty. It returns an error if a string is not UTF-8.
func (m *Builder) Texts(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if !validUTF8(pairs[i+1]) {
			return within(pairs[i], ErrUTF8)
		}
		m.String(pairs[i], pairs[i+1])
	}
	return nil
}

// Int appends a key and an integer, or nothing if it is zero.
func (m *Builder) Int(key string, v int64) {
	if v != 0 {
		m.key(key)
		m.b = AppendInt(m.b, v)
	}
}

// Bool appends a key and true, or nothing if v is false.
func (m *Builder) Bool(key string, v bool) {
	if v {
		m.key(key)
		m.b = AppendBool(m.b, v)
	}
}

// Raw appends a key and a value that is already msgpack, or nothing if the
// value is empty.
func (m *Builder) Raw(key string, v []byte) {
	if len(v) > 0 {
		m.key(key)
		m.b = append(m.b, v...)
	}
}

// Value appends a key and any value that Append accepts. After an error the map
// is unchanged.
func (m *Builder) Value(key string, v any) error {
	b, err := Append(AppendString(m.b, key), v)
	if err != nil {
		return err
	}
	m.b = b
	m.n++
	return nil
}

// Map appends a key and a map that f writes.
func (m *Builder) Map(key string, f func(inner *Builder)) {
	m.key(key)
	inner := NewBuilder(m.b)
	f(&inner)
	m.b = inner.End()
}

// End returns dst followed by the map. A map has at most 65535 keys.
func (m *Builder) End() []byte {
	binary.BigEndian.PutUint16(m.b[m.start+1:], uint16(m.n))
	return m.b
}
