// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// AppendValue appends the msgpack of a JSON-like value: the types that DecodeValue returns, the other integer widths, []string and
// map[string]string. Keys are sorted and integers take the fewest bytes, so equal values give equal bytes. Any other type is an error, and
// so is a value that Check would reject.
func AppendValue(dst []byte, v any) ([]byte, error) { return appendValue(dst, v, 0) }

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	switch v := v.(type) {
	case nil:
		return append(dst, 0xc0), nil
	case bool:
		return appendBool(dst, v), nil
	case string:
		return appendString(dst, v), nil
	case int64:
		return AppendInt(dst, v), nil
	case int:
		return AppendInt(dst, int64(v)), nil
	case int32:
		return AppendInt(dst, int64(v)), nil
	case uint64:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("%w: integer %d is larger than an int64", ErrType, v)
		}
		return AppendInt(dst, int64(v)), nil
	case float64:
		return appendFloat(dst, v)
	case []any:
		return appendSlice(dst, v, depth)
	case map[string]any:
		return appendMap(dst, v, depth)
	case []string:
		return appendStrings(dst, v), nil
	case map[string]string:
		dst = AppendMapHead(dst, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			dst = appendString(appendString(dst, k), v[k])
		}
		return dst, nil
	}
	return nil, fmt.Errorf("%w: Go type %T", ErrType, v)
}

func appendSlice(dst []byte, a []any, depth int) ([]byte, error) {
	dst = AppendArrayHead(dst, len(a))
	var err error
	for _, e := range a {
		if dst, err = appendValue(dst, e, depth+1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func appendMap(dst []byte, m map[string]any, depth int) ([]byte, error) {
	dst = AppendMapHead(dst, len(m))
	var err error
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if dst, err = appendValue(appendString(dst, k), m[k], depth+1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0xc3)
	}
	return append(dst, 0xc2)
}

func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%w: float is not a finite number", ErrType)
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(f)), nil
}

// AppendInt appends an integer: a non-negative one in an unsigned form and a negative one in a signed form, like compact msgpack encoders.
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
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(v)) //nolint:gosec // two's complement is the format
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(v)) //nolint:gosec // two's complement is the format
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
}

func appendString(dst []byte, s string) []byte {
	return append(AppendTextHead(dst, len(s)), s...)
}

// AppendTextHead appends the head of a string of n bytes, which the caller must append.
func AppendTextHead(dst []byte, n int) []byte {
	switch {
	case n <= 31:
		return append(dst, 0xa0|byte(n))
	case n <= math.MaxUint8:
		return append(dst, 0xd9, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n)) //nolint:gosec // messages are shorter than 4 GiB
}

// AppendArrayHead appends the head of an array of n elements, which the caller must append.
func AppendArrayHead(dst []byte, n int) []byte { return appendHead(dst, n, 0x90, 0xdc) }

// AppendMapHead appends the head of a map of n entries, which the caller must append: each key and its value.
func AppendMapHead(dst []byte, n int) []byte { return appendHead(dst, n, 0x80, 0xde) }

func appendHead(dst []byte, n int, fixed, wide byte) []byte {
	switch {
	case n <= 15:
		return append(dst, fixed|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, wide), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, wide+1), uint32(n)) //nolint:gosec // messages are shorter than 4 GiB
}
