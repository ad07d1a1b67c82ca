// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Limits of decoding. They bound the memory that a hostile guest can make the host allocate, and keep out values on which Kubernetes'
// DeepCopyJSON would panic.
const (
	// MaxDepth is the maximum nesting depth of maps and arrays.
	MaxDepth = 128
	// MaxBytes is the maximum length of one message: the API server's own limit of a request (3 MiB), and room for the rest of the message.
	MaxBytes = 4 << 20
	// MaxItems is the maximum number of children that one result may apply, and of keys that one call of map may return.
	MaxItems = 10_000
)

// Errors of decoding; match them with errors.Is.
var (
	// ErrTruncated means that the message ends in the middle of a value.
	ErrTruncated = errors.New("msgpack ends too early")
	// ErrTrailing means that bytes follow the value.
	ErrTrailing = errors.New("bytes after the msgpack value")
	// ErrTooDeep means that maps and arrays nest deeper than MaxDepth.
	ErrTooDeep = fmt.Errorf("msgpack nests deeper than %d", MaxDepth)
	// ErrTooLarge means that the message is longer than MaxBytes.
	ErrTooLarge = fmt.Errorf("message is longer than %d bytes", MaxBytes)
	// ErrType means that a value has a type that is not allowed in messages, or not in its place.
	ErrType = errors.New("msgpack type is not allowed here")
)

// reader reads msgpack sequentially. Its methods return errors for all input that a guest may have written; they never panic, and never
// allocate memory for a length that exceeds the available bytes.
type reader struct {
	b   []byte
	pos int
}

// kind is the type of the next value, as far as this ABI distinguishes types.
type kind byte

const (
	kindInvalid kind = iota // never valid: 0xc1, binary, extensions of a fixed length
	kindNil
	kindBool
	kindInt
	kindFloat
	kindString
	kindArray
	kindMap
	kindOpaque
)

func (r *reader) peek() (kind, error) {
	if r.pos >= len(r.b) {
		return kindInvalid, ErrTruncated
	}
	switch c := r.b[r.pos]; {
	case c <= 0x7f, c >= 0xe0, c >= 0xcc && c <= 0xd3:
		return kindInt, nil
	case c <= 0x8f, c == 0xde, c == 0xdf:
		return kindMap, nil
	case c <= 0x9f, c == 0xdc, c == 0xdd:
		return kindArray, nil
	case c <= 0xbf, c >= 0xd9 && c <= 0xdb:
		return kindString, nil
	case c == 0xc0:
		return kindNil, nil
	case c == 0xc2, c == 0xc3:
		return kindBool, nil
	case c == 0xca, c == 0xcb:
		return kindFloat, nil
	case c >= 0xc7 && c <= 0xc9:
		return kindOpaque, nil
	}
	return kindInvalid, fmt.Errorf("%w: byte %#x (binary and extension types do not cross the sandbox boundary)", ErrType, r.b[r.pos])
}

func (r *reader) expect(k kind, what string) error {
	got, err := r.peek()
	if err != nil {
		return err
	}
	if got != k {
		return fmt.Errorf("%w: want %s", ErrType, what)
	}
	return nil
}

// take returns the next n bytes.
func (r *reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.b)-r.pos {
		return nil, ErrTruncated
	}
	b := r.b[r.pos : r.pos+n]
	r.pos += n
	return b, nil
}

// uint reads an n byte big-endian number.
func (r *reader) uint(n int) (uint64, error) {
	b, err := r.take(n)
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

// length reads the head of a string, array or map: either a fixed form whose low bits (mask) are the length, or a form of 8, 16 or 32 bits,
// with codes starting at first. Each element takes at least minBytes, so a larger length is invalid.
func (r *reader) length(mask, first byte, minBytes int) (int, error) {
	c := r.b[r.pos]
	r.pos++
	n := uint64(c & mask)
	if c >= 0xc0 {
		width := 1 << (c - first)
		if first != 0xd9 {
			width = 2 << (c - first)
		}
		var err error
		if n, err = r.uint(width); err != nil {
			return 0, err
		}
	}
	if n*uint64(minBytes) > uint64(len(r.b)-r.pos) {
		return 0, ErrTruncated
	}
	return int(n), nil
}

func (r *reader) mapLen() (int, error) {
	if err := r.expect(kindMap, "a map"); err != nil {
		return 0, err
	}
	return r.length(0x0f, 0xde, 2)
}

func (r *reader) arrayLen() (int, error) {
	if err := r.expect(kindArray, "an array"); err != nil {
		return 0, err
	}
	return r.length(0x0f, 0xdc, 1)
}

// str reads a string as a slice of the message.
func (r *reader) str() ([]byte, error) {
	if err := r.expect(kindString, "a string"); err != nil {
		return nil, err
	}
	n, err := r.length(0x1f, 0xd9, 1)
	if err != nil {
		return nil, err
	}
	b, err := r.take(n)
	if err == nil && !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: string is not UTF-8", ErrType)
	}
	return b, err
}

func (r *reader) bool() (bool, error) {
	if err := r.expect(kindBool, "a bool"); err != nil {
		return false, err
	}
	c := r.b[r.pos]
	r.pos++
	return c == 0xc3, nil
}

// int reads an integer of any width; a uint64 larger than the largest int64 is an error.
func (r *reader) int() (int64, error) {
	if err := r.expect(kindInt, "an integer"); err != nil {
		return 0, err
	}
	c := r.b[r.pos]
	r.pos++
	switch {
	case c <= 0x7f:
		return int64(c), nil
	case c >= 0xe0:
		return int64(int8(c)), nil // the sign bit is intended
	case c <= 0xcf: // uint8 .. uint64
		v, err := r.uint(1 << (c - 0xcc))
		if err == nil && v > math.MaxInt64 {
			return 0, fmt.Errorf("%w: integer %d is larger than an int64", ErrType, v)
		}
		return int64(v), err //nolint:gosec // checked
	}
	width := 1 << (c - 0xd0)
	v, err := r.uint(width)
	shift := 64 - 8*width
	return int64(v<<shift) >> shift, err //nolint:gosec // sign extension
}

// float reads a float of either width. NaN and infinities are rejected, because JSON cannot represent them.
func (r *reader) float() (float64, error) {
	if err := r.expect(kindFloat, "a float"); err != nil {
		return 0, err
	}
	width := 4 << (r.b[r.pos] - 0xca)
	r.pos++
	v, err := r.uint(width)
	if err != nil {
		return 0, err
	}
	f := math.Float64frombits(v)
	if width == 4 {
		f = float64(math.Float32frombits(uint32(v))) //nolint:gosec // 4 bytes were read
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%w: float is not a finite number", ErrType)
	}
	return f, nil
}

// skip reads one value and validates all of it.
func (r *reader) skip(depth int) error {
	k, err := r.peek()
	if err != nil {
		return err
	}
	switch k {
	case kindNil:
		r.pos++
	case kindBool:
		_, err = r.bool()
	case kindInt:
		_, err = r.int()
	case kindFloat:
		_, err = r.float()
	case kindString:
		_, err = r.str()
	case kindOpaque:
		_, err = r.opaque()
	default: // an array or a map
		err = r.skipNested(k, depth)
	}
	return err
}

// nestedLen reads the head of a map or of an array.
func (r *reader) nestedLen(k kind) (int, error) {
	if k == kindMap {
		return r.mapLen()
	}
	return r.arrayLen()
}

func (r *reader) skipNested(k kind, depth int) error {
	if depth >= MaxDepth {
		return ErrTooDeep
	}
	n, err := r.nestedLen(k)
	for i := 0; i < n && err == nil; i++ {
		if k == kindMap {
			if _, err = r.str(); err != nil {
				return err
			}
		}
		err = r.skip(depth + 1)
	}
	return err
}

// end returns ErrTrailing if bytes follow.
func (r *reader) end() error {
	if r.pos != len(r.b) {
		return ErrTrailing
	}
	return nil
}
