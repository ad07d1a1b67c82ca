package wire

import (
	"errors"
	"math"
	"unicode/utf8"
)

// Errors of Check and Decode; match them with errors.Is.
var (
	// ErrTruncated says that the message ends in the middle of a value.
	ErrTruncated = errors.New("msgpack ends too early")
	// ErrTrailing says that bytes follow the value.
	ErrTrailing = errors.New("bytes after the msgpack value")
	// ErrTooDeep says that maps and arrays nest deeper than MaxDepth.
	ErrTooDeep = errors.New("msgpack nests deeper than 128")
	// ErrTooLarge says that the message is longer than MaxBytes.
	ErrTooLarge = errors.New("message is longer than 4194304 bytes")
	// ErrType says that a value is of a type that does not cross the sandbox
	// boundary, or not of the type that belongs in its place.
	ErrType = errors.New("msgpack type is not allowed here")
	// ErrNumber says that a number is not finite or beyond an int64.
	ErrNumber = errors.New("number is not finite or not an int64")
	// ErrUTF8 says that a string is not UTF-8.
	ErrUTF8 = errors.New("string is not UTF-8")
	// ErrDuplicate says that a map has a key twice.
	ErrDuplicate = errors.New("map has a key twice")
)

// Check reports whether b is one value that may cross the sandbox boundary
// (abi/ABI.md, section 3), all of it. That no map has a key twice is checked by
// Decode.
func Check(b []byte) error {
	if len(b) > MaxBytes {
		return ErrTooLarge
	}
	pos, err := check(b, 0, 0)
	if err == nil && pos != len(b) {
		return ErrTrailing
	}
	return err
}

// check returns the position after the value at pos.
func check(b []byte, pos, depth int) (int, error) {
	t := TypeOf(b[pos:])
	size, payload, values, ok := head(b, pos)
	switch {
	case pos < len(b) && t == Invalid:
		return 0, ErrType
	case !ok || payload > len(b)-pos-size:
		return 0, ErrTruncated
	case (t == Map || t == Array) && depth >= MaxDepth:
		return 0, ErrTooDeep
	}
	if err := checkScalar(t, b[pos:pos+size+payload]); err != nil {
		return 0, err
	}
	pos += size + payload
	for i := range values {
		if t == Map && i%2 == 0 && pos < len(b) && TypeOf(b[pos:]) != String {
			return 0, ErrType
		}
		var err error
		if pos, err = check(b, pos, depth+1); err != nil {
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
		if s, _ := StringBytes(v); !utf8.Valid(s) {
			return ErrUTF8
		}
	default: // its head says it all
	}
	return nil
}
