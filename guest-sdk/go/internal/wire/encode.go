// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Append appends the msgpack of a value: nil, booleans, numbers, strings,
// time.Time (RFC 3339 in UTC, with seconds), slices, arrays, maps, structs with
// msgpack or json tags, pointers to these, any Appender, and types with methods
// for encoding/json. As in JSON, a []byte is written in base64, and keys of
// maps as text. The keys of a map are sorted, so equal values give equal bytes.
// It returns an error for a value that Check would refuse, and for a struct
// without any field to write; the content of dst is then undefined.
func Append(dst []byte, v any) ([]byte, error) { return appendAny(dst, v, 0) }

func appendAny(dst []byte, v any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	switch v := v.(type) {
	case nil:
		return AppendNil(dst), nil
	case string:
		return AppendText(dst, v)
	case bool:
		return AppendBool(dst, v), nil
	case int:
		return AppendInt(dst, int64(v)), nil
	case int32:
		return AppendInt(dst, int64(v)), nil
	case int64:
		return AppendInt(dst, v), nil
	case float64:
		return appendFinite(dst, v)
	case time.Time:
		return appendTime(dst, v), nil
	case map[string]any:
		return appendMapAny(dst, v, depth)
	case map[string]string:
		return appendMapString(dst, v)
	case []any:
		return appendSlice(dst, v, depth)
	case []string:
		return appendStrings(dst, v)
	case Appender:
		if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
			return AppendNil(dst), nil
		}
		return v.AppendMsgpack(dst)
	}
	val := reflect.ValueOf(v)
	if val.Kind() != reflect.Pointer {
		p := planOf(val.Type())
		return p.encode(p, dst, addressed(val).UnsafePointer(), depth)
	}
	if val.IsNil() {
		return AppendNil(dst), nil
	}
	p := planOf(val.Type().Elem())
	return p.encode(p, dst, val.UnsafePointer(), depth+1)
}

// AppendText is AppendString for a string that may not be UTF-8. It then
// returns ErrUTF8.
func AppendText(dst []byte, s string) ([]byte, error) {
	if !validUTF8(s) {
		return nil, ErrUTF8
	}
	return AppendString(dst, s), nil
}

func appendFinite(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, ErrNumber
	}
	return AppendFloat(dst, f), nil
}

func appendMapAny(dst []byte, m map[string]any, depth int) ([]byte, error) {
	dst = AppendMap(dst, len(m))
	var few [smallMap]entry[any]
	for _, e := range sortedEntries(few[:0], m) {
		var err error
		if dst, err = AppendText(dst, e.key); err == nil {
			dst, err = appendAny(dst, e.value, depth+1)
		}
		if err != nil {
			return nil, within(e.key, err)
		}
	}
	return dst, nil
}

func appendMapString(dst []byte, m map[string]string) ([]byte, error) {
	dst = AppendMap(dst, len(m))
	var few [smallMap]entry[string]
	for _, e := range sortedEntries(few[:0], m) {
		var err error
		if dst, err = AppendText(dst, e.key); err == nil {
			dst, err = AppendText(dst, e.value)
		}
		if err != nil {
			return nil, within(e.key, err)
		}
	}
	return dst, nil
}

// smallMap is the number of keys up to which the entries of a map are sorted on
// the stack.
const smallMap = 8

type entry[V any] struct {
	key   string
	value V
}

// sortedEntries appends the entries of m, sorted by key, to the empty slice
// dst. The entries include their values, because a second lookup of each key
// would cost more.
func sortedEntries[V any](dst []entry[V], m map[string]V) []entry[V] {
	for k, v := range m {
		dst = append(dst, entry[V]{k, v})
	}
	if len(dst) > smallMap {
		slices.SortFunc(dst, func(a, b entry[V]) int { return strings.Compare(a.key, b.key) })
		return dst
	}
	for i := 1; i < len(dst); i++ {
		for j := i; j > 0 && less(dst[j].key, dst[j-1].key); j-- {
			dst[j], dst[j-1] = dst[j-1], dst[j]
		}
	}
	return dst
}

// less is a < b. It compares the first bytes inline, because the comparison of
// strings is a function call.
func less(a, b string) bool {
	if a == "" || b == "" || a[0] == b[0] {
		return a < b
	}
	return a[0] < b[0]
}

func appendSlice(dst []byte, a []any, depth int) ([]byte, error) {
	dst = AppendArray(dst, len(a))
	for i, e := range a {
		var err error
		if dst, err = appendAny(dst, e, depth+1); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}

func appendStrings(dst []byte, a []string) ([]byte, error) {
	dst = AppendArray(dst, len(a))
	for i, s := range a {
		var err error
		if dst, err = AppendText(dst, s); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}
