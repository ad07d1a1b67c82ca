// Package wire reads and writes the msgpack of the reconciler ABI (abi/ABI.md,
// section 3) in place: reading a field of a message builds no map and copies
// nothing but the field.
//
// A view is a []byte that starts with a value; bytes may follow it. Functions
// that read a view answer for whatever bytes there are: they never panic and
// never trust a length that the bytes do not back.
package wire

import "encoding/binary"

// Limits of a message (abi/ABI.md, section 3).
const (
	// MaxBytes is how long one message may be.
	MaxBytes = 4 << 20
	// MaxDepth is how deep maps and arrays may nest.
	MaxDepth = 128
)

// Type is the type of a value, as far as the ABI tells types apart.
type Type uint8

// The types that cross the sandbox boundary. Invalid is what cannot be read: a
// truncated message, a binary or an extension value.
const (
	Invalid Type = iota
	Nil
	Bool
	Int
	Float
	String
	Array
	Map
)

// TypeOf returns the type of the value that v starts with.
func TypeOf(v []byte) Type {
	if len(v) == 0 {
		return Invalid
	}
	return types[v[0]]
}

// types says for each first byte of what type its value is: one lookup instead
// of a decision tree, which is dear in a guest (see Skip).
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
		}
	}
	return types
}

// head reads the head of the value at pos: how many bytes the head takes, how
// many bytes of payload follow it, and how many values follow it (two per key
// of a map). ok is false if it is truncated or no type that crosses the sandbox
// boundary.
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

// wideHead is head for the forms whose first byte does not say it all.
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

// counted is the end of wideHead: n is a count of bytes (0xda, 0xdb), of
// elements or of keys. Each takes at least a byte, so a count beyond what is
// left is a lie; refusing it here keeps every sum within an int.
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

// shapes says for each first byte how many bytes its value takes up to its
// first element (the lower 6 bits) and how many values follow those (the
// others): one lookup instead of a decision tree, since skipping is what reading
// a field costs. 0 stands for the heads that do not say it all.
var shapes = makeShapes()

func makeShapes() (shapes [256]uint16) {
	for c := range shapes {
		if size, payload, values, ok := head([]byte{byte(c), 0, 0, 0, 0}, 0); ok && (c < 0xd9 || c >= 0xe0) {
			shapes[c] = uint16(size+payload) | uint16(values)<<6
		}
	}
	return shapes
}

// Skip returns the position after the value at pos, or -1 if it is not there
// in full. It does not recurse and does not look into strings.
//
// It takes three values in a round and jumps only where it must: a host that can
// interrupt a guest checks at each jump of the standard toolchain's code, which
// made this twice as slow.
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
		// Every value that is still to come takes a byte. Without this, heads
		// that lie could add up to more than an int holds.
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

// skipWide goes over a head that is not in shapes, and over its payload; it
// returns how many values follow.
func skipWide(b []byte, pos int) (next, values int) {
	size, payload, values, ok := wideHead(b, pos, b[pos])
	if !ok || payload > len(b)-pos-size {
		return -1, 0
	}
	return pos + size + payload, values
}

// Trim cuts off what follows the value that v starts with; nil if there is no
// whole value.
func Trim(v []byte) []byte {
	end := Skip(v, 0)
	if end < 0 {
		return nil
	}
	return v[:end:end]
}

// Len returns the number of elements of an array or of keys of a map, and the
// position of the first; -1 if v is neither.
func Len(v []byte) (n, pos int) {
	t := TypeOf(v)
	if t == Map && v[0] <= 0x8f { // most maps are small: their head is one byte
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

var typeNames = [...]string{"invalid value", "nil", "bool", "integer", "float", "string", "array", "map"}

// String returns the type's name as it stands in messages for people.
func (t Type) String() string { return typeNames[min(int(t), len(typeNames)-1)] }
