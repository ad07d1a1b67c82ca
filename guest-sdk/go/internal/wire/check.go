// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math"
)

// Errors of Check and Decode; match them with errors.Is.
var (
	// ErrTruncated means that the message ends within a value.
	ErrTruncated = errors.New("msgpack ends too early")
	// ErrTrailing means that bytes follow the value.
	ErrTrailing = errors.New("bytes after the msgpack value")
	// ErrTooDeep means that maps and arrays nest deeper than MaxDepth.
	ErrTooDeep = errors.New("msgpack nests deeper than 128")
	// ErrTooLarge means that the message is longer than MaxBytes.
	ErrTooLarge = errors.New("message is longer than 4194304 bytes")
	// ErrType means that the type of a value cannot cross the sandbox boundary,
	// or is not the expected type.
	ErrType = errors.New("msgpack type is not allowed here")
	// ErrNumber means that a number is not finite or does not fit into an
	// int64.
	ErrNumber = errors.New("number is not finite or not an int64")
	// ErrUTF8 means that a string is not UTF-8.
	ErrUTF8 = errors.New("string is not UTF-8")
	// ErrDuplicate means that a key occurs twice in a map.
	ErrDuplicate = errors.New("map has a duplicate key")
)

// Check reports whether b is exactly one value that may cross the sandbox
// boundary (abi/ABI.md, section 3). It does not look for duplicate keys; Decode
// does.
func Check(b []byte) error {
	if len(b) > MaxBytes {
		return ErrTooLarge
	}
	pos, err := check(b, 0, 1, false, 0)
	if err == nil && pos != len(b) {
		return ErrTrailing
	}
	return err
}

// check checks n values from pos on and returns the position after them. For a
// map, the values are the keys and values in turn.
func check(b []byte, pos, n int, keyed bool, depth int) (int, error) {
	for i := range n {
		if pos >= len(b) {
			return 0, ErrTruncated
		}
		c := b[pos]
		if end := pos + 1 + int(c&0x1f); c&0xe0 == 0xa0 && end <= len(b) { // most values are short strings
			if !validUTF8(unsafeString(b[pos+1 : end])) {
				return 0, ErrUTF8
			}
			pos = end
			continue
		}
		t := types[c]
		if t == Invalid || keyed && i&1 == 0 && t != String {
			return 0, ErrType
		}
		size, payload, values, ok := head(b, pos)
		if !ok || payload > len(b)-pos-size {
			return 0, ErrTruncated
		}
		if err := checkScalar(t, b[pos:pos+size+payload]); err != nil {
			return 0, err
		}
		pos += size + payload
		if t != Map && t != Array {
			continue
		}
		if depth >= MaxDepth {
			return 0, ErrTooDeep
		}
		var err error
		if pos, err = check(b, pos, values, t == Map, depth+1); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

func checkScalar(t Type, v []byte) error {
	switch t {
	case Int:
		if _, ok := readInt(v); !ok {
			return ErrNumber
		}
	case Float:
		if f, _ := ReadFloat(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return ErrNumber
		}
	case String:
		if s, _ := StringBytes(v); !validUTF8(unsafeString(s)) {
			return ErrUTF8
		}
	default: // the header is the entire value
	}
	return nil
}
