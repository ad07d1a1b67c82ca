// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes the msgpack of the reconciler ABI (abi/ABI.md,
// section 3) in place: to read a field of a message it builds no map, and
// copies only that field.
//
// A view is a []byte that starts with a value; other bytes may follow it.
// Functions that read a view accept any bytes: they never panic, and never
// trust a length that exceeds the available bytes.
package wire

import "encoding/binary"

// Limits of a message (abi/ABI.md, section 3).
const (
	// MaxBytes is the maximum size of a message.
	MaxBytes = 4 << 20
	// MaxDepth is the maximum nesting depth of maps and arrays.
	MaxDepth = 128
)

// Type is the type of a value, as the ABI distinguishes types.
type Type uint8

// The types that may cross the sandbox boundary. Invalid is every other value:
// a truncated one, a binary value, an extension value that is not Opaque.
const (
	Invalid Type = iota
	Nil
	Bool
	Int
	Float
	String
	Array
	Map
	Opaque // JSON as text, in place of the value
)

// TypeOf returns the type of the value at the start of v.
func TypeOf(v []byte) Type {
	if len(v) == 0 {
		return Invalid
	}
	return types[v[0]]
}

// types maps the first byte of a value to its type: one lookup instead of a
// decision tree, which is expensive in a guest (see Skip).
var types = makeTypes()

func makeTypes() (types [256]Type) {
	for c := range types {
		switch {
		case c <= 0x7f, c >= 0xe0, c >= 0xcc && c <= 0xd3:
			types[c] = Int
		case c <= 0x8f, c == 0xde, c == 0xdf:
			types[c] = Map
		case c <= 0x9f, c == 0xdc, c == 0xdd:
			types[c] = Array
		case c <= 0xbf, c >= 0xd9 && c <= 0xdb:
			types[c] = String
		case c == 0xc0:
			types[c] = Nil
		case c == 0xc2, c == 0xc3:
			types[c] = Bool
		case c == 0xca, c == 0xcb:
			types[c] = Float
		case c >= 0xc7 && c <= 0xc9:
			types[c] = Opaque
		}
	}
	return types
}

// head decodes the header of the value at pos. It returns the size of the
// header, the size of the payload after it, and the number of values that
// follow (two for each key of a map). ok is false if the value is truncated or
// has a type that cannot cross the sandbox boundary.
func head(b []byte, pos int) (size, payload, values int, ok bool) {
	if pos >= len(b) {
		return 0, 0, 0, false
	}
	switch c := b[pos]; {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 1, 0, 0, true
	case c <= 0x8f:
		return 1, 0, 2 * int(c&0x0f), true
	case c <= 0x9f:
		return 1, 0, int(c & 0x0f), true
	case c <= 0xbf:
		return 1, int(c & 0x1f), 0, true
	default:
		return wideHead(b, pos, c)
	}
}

// wideHead is head for the forms with a length after the first byte.
func wideHead(b []byte, pos int, c byte) (size, payload, values int, ok bool) {
	left := len(b) - pos - 1
	switch c {
	case 0xcc, 0xd0:
		return 1, 1, 0, true
	case 0xcd, 0xd1:
		return 1, 2, 0, true
	case 0xca, 0xce, 0xd2:
		return 1, 4, 0, true
	case 0xcb, 0xcf, 0xd3:
		return 1, 8, 0, true
	case 0xd9:
		if left >= 1 {
			return 2, int(b[pos+1]), 0, true
		}
	case 0xc7, 0xc8, 0xc9:
		return opaqueHead(b[pos:])
	case 0xda, 0xdc, 0xde:
		if left >= 2 {
			return counted(c, 3, uint64(binary.BigEndian.Uint16(b[pos+1:])), left)
		}
	case 0xdb, 0xdd, 0xdf:
		if left >= 4 {
			return counted(c, 5, uint64(binary.BigEndian.Uint32(b[pos+1:])), left)
		}
	}
	return 0, 0, 0, false
}

// opaqueHead is head for opaque JSON: a length of 1, 2 or 4 bytes, and the type
// of the extension.
func opaqueHead(v []byte) (size, payload, values int, ok bool) {
	width := 1 << (v[0] - 0xc7)
	size = width + 2
	if len(v) < size || v[size-1] != opaqueType {
		return 0, 0, 0, false
	}
	var n uint64
	for _, c := range v[1 : 1+width] {
		n = n<<8 | uint64(c)
	}
	if n > uint64(len(v)-size) {
		return 0, 0, 0, false
	}
	return size, int(n), 0, true
}

// counted completes wideHead: n is a number of bytes (0xda, 0xdb), of elements
// or of keys. Each takes at least one byte, so a number above the remaining
// bytes is invalid. Refusing it here ensures that no sum overflows an int.
func counted(c byte, size int, n uint64, left int) (_, payload, values int, ok bool) {
	if n > uint64(left) {
		return 0, 0, 0, false
	}
	switch c {
	case 0xda, 0xdb:
		return size, int(n), 0, true
	case 0xde, 0xdf:
		return size, 0, 2 * int(n), true
	}
	return size, 0, int(n), true
}

// shapes maps the first byte of a value to the size up to its first element
// (lower 6 bits) and to the number of values that follow (other bits). This is
// one lookup instead of a decision tree, because skipping values is the main
// cost of reading a field. 0 stands for headers with a length after the first
// byte.
var shapes = makeShapes()

func makeShapes() (shapes [256]uint16) {
	for c := range shapes {
		if size, payload, values, ok := head([]byte{byte(c), 0, 0, 0, 0}, 0); ok && (c < 0xd9 || c >= 0xe0) {
			shapes[c] = uint16(size+payload) | uint16(values)<<6
		}
	}
	return shapes
}

// Skip returns the position after the value at pos, or -1 if the value is
// incomplete. It does not recurse and does not look into strings.
//
// It handles three values in each iteration and avoids jumps: in code of the
// standard toolchain, a host that can interrupt the guest checks at each jump,
// which made this function twice as slow.
func Skip(b []byte, pos int) int {
	var shape uint16
	var values int
	need := 1
	for {
		if pos >= len(b) {
			return -1
		}
		if shape = shapes[b[pos]]; shape == 0 {
			goto wide
		}
		pos += int(shape & 0x3f)
		if need += int(shape>>6) - 1; need == 0 {
			goto done
		}
		if pos >= len(b) {
			return -1
		}
		if shape = shapes[b[pos]]; shape == 0 {
			goto wide
		}
		pos += int(shape & 0x3f)
		if need += int(shape>>6) - 1; need == 0 {
			goto done
		}
		if pos >= len(b) {
			return -1
		}
		if shape = shapes[b[pos]]; shape == 0 {
			goto wide
		}
		pos += int(shape & 0x3f)
		if need += int(shape>>6) - 1; need == 0 {
			goto done
		}
		continue
	wide:
		if pos, values = skipWide(b, pos); pos < 0 {
			return -1
		}
		// Every remaining value takes at least one byte. Without this check,
		// invalid headers could overflow the sum.
		if need += values - 1; need > len(b)-pos {
			return -1
		}
		if need == 0 {
			return pos
		}
	}
done:
	if pos > len(b) {
		return -1
	}
	return pos
}

// skipWide skips a header that is not in shapes, and its payload. It returns
// the number of values that follow.
func skipWide(b []byte, pos int) (next, values int) {
	size, payload, values, ok := wideHead(b, pos, b[pos])
	if !ok || payload > len(b)-pos-size {
		return -1, 0
	}
	return pos + size + payload, values
}

// Trim removes the bytes after the value at the start of v. It returns nil if
// the value is incomplete.
func Trim(v []byte) []byte {
	end := Skip(v, 0)
	if end < 0 {
		return nil
	}
	return v[:end:end]
}

// Len returns the number of elements of an array or of keys of a map, and the
// position of the first one. It returns -1 if v is neither.
func Len(v []byte) (n, pos int) {
	t := TypeOf(v)
	if t == Map && v[0] <= 0x8f { // most maps are small, with a one-byte header
		return int(v[0] & 0x0f), 1
	}
	size, _, values, ok := head(v, 0)
	switch {
	case !ok || t != Array && t != Map:
		return -1, 0
	case t == Map:
		return values / 2, size
	}
	return values, size
}

var typeNames = [...]string{"invalid value", "nil", "bool", "integer", "float", "string", "array", "map", "opaque JSON"}

// String returns the name of the type for error messages.
func (t Type) String() string { return typeNames[min(int(t), len(typeNames)-1)] }
