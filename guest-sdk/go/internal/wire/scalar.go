// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"
)

// StringBytes returns a view of the string at the start of v, or nil and false
// if there is no string.
func StringBytes(v []byte) ([]byte, bool) {
	if TypeOf(v) != String {
		return nil, false
	}
	// Most strings are short, with a one-byte header.
	if end := 1 + int(v[0]&0x1f); v[0] <= 0xbf && end <= len(v) {
		return v[1:end], true
	}
	size, payload, _, ok := head(v, 0)
	if !ok || payload > len(v)-size {
		return nil, false
	}
	return v[size : size+payload], true
}

// ReadBool returns the bool at the start of v.
func ReadBool(v []byte) (val, ok bool) {
	return len(v) > 0 && v[0] == 0xc3, TypeOf(v) == Bool
}

// ReadInt returns the integer at the start of v. It accepts a float with an
// integral value, because JSON does not distinguish 1 from 1.0.
func ReadInt(v []byte) (int64, bool) {
	switch TypeOf(v) {
	case Int:
		return readInt(v)
	case Float:
		f, ok := ReadFloat(v)
		// 2^63 fits into a float64 exactly, the largest int64 does not.
		if !ok || f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxInt64 {
			return 0, false
		}
		return int64(f), true
	default:
		return 0, false
	}
}

func readInt(v []byte) (int64, bool) {
	c := v[0]
	if c <= 0x7f || c >= 0xe0 {
		return int64(int8(c)), true
	}
	width := 1 << (c & 3) // 0xcc.. and 0xd0.. are both multiples of four
	if len(v) <= width {
		return 0, false
	}
	var u uint64
	for _, b := range v[1 : 1+width] {
		u = u<<8 | uint64(b)
	}
	if c <= 0xcf {
		return int64(u), u <= math.MaxInt64
	}
	shift := 64 - 8*width
	return int64(u<<shift) >> shift, true
}

// ReadFloat returns the number at the start of v. It also accepts an integer.
func ReadFloat(v []byte) (float64, bool) {
	switch {
	case TypeOf(v) == Int:
		i, ok := readInt(v)
		return float64(i), ok
	case len(v) >= 5 && v[0] == 0xca:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(v[1:]))), true
	case len(v) >= 9 && v[0] == 0xcb:
		return math.Float64frombits(binary.BigEndian.Uint64(v[1:])), true
	}
	return 0, false
}
