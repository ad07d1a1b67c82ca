package conformance

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// object and list are what cases are written in. Beside what abi.AppendValue
// takes they may hold a raw or a pairs.
type (
	object = map[string]any
	list   = []any
)

// raw is msgpack that is written as it is.
type raw []byte

// pairs is a map whose keys are written in this order.
type pairs []pair

type pair struct {
	key   string
	value any
}

// encode writes a value in msgpack. A value that cannot be written is a mistake
// in a case.
func encode(v any) []byte { return appendTo(nil, v) }

func appendTo(dst []byte, v any) []byte {
	switch v := v.(type) {
	case raw:
		return append(dst, v...)
	case pairs:
		return appendPairs(dst, v)
	case object:
		if !special(v) {
			break
		}
		sorted := make(pairs, 0, len(v))
		for key, val := range v {
			sorted = append(sorted, pair{key, val})
		}
		slices.SortFunc(sorted, func(a, b pair) int { return compare(a.key, b.key) })
		return appendPairs(dst, sorted)
	case list:
		if !special(v) {
			break
		}
		dst = binary.BigEndian.AppendUint16(append(dst, 0xdc), uint16(len(v))) //nolint:gosec // a case has no more
		for _, e := range v {
			dst = appendTo(dst, e)
		}
		return dst
	}
	out, err := abi.AppendValue(dst, v)
	if err != nil {
		panic(fmt.Sprintf("BUG: case: %T: %v", v, err))
	}
	return out
}

func appendPairs(dst []byte, m pairs) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, 0xde), uint16(len(m))) //nolint:gosec // a case has no more
	for _, p := range m {
		dst = appendTo(appendTo(dst, p.key), p.value)
	}
	return dst
}

// special reports whether a value holds what abi.AppendValue does not take.
func special(v any) bool {
	switch v := v.(type) {
	case raw, pairs:
		return true
	case object:
		for _, e := range v {
			if special(e) {
				return true
			}
		}
	case list:
		return slices.ContainsFunc(v, special)
	}
	return false
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// plain is v as it is read from msgpack: with int64 and float64 for all numbers.
func plain(v any) any {
	out, err := abi.DecodeValue(encode(v))
	if err != nil {
		panic(fmt.Sprintf("BUG: case: %v", err))
	}
	return out
}

// same says how a value differs from the one that is wanted.
func same(what string, got, want any) error {
	want = plain(want)
	if n, ok := got.(int); ok {
		got = int64(n)
	}
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: got %s, want %s", what, short(got), short(want))
}

// alike is same for values in which what is empty may be left out.
func alike(what string, got, want any) error { return same(what, prune(got), prune(plain(want))) }

// prune takes out of all maps what is false, 0, "", nil or empty.
func prune(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, val := range v {
			if val = prune(val); !empty(val) {
				out[key] = val
			}
		}
		return out
	case list:
		out := make(list, len(v))
		for i, e := range v {
			out[i] = prune(e)
		}
		return out
	}
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case object:
		return len(v) == 0
	case list:
		return len(v) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

// short shows a value in an error, and of a large one the start.
func short(v any) string {
	s := fmt.Sprintf("%#v", v)
	if text, ok := v.(string); ok {
		s = fmt.Sprintf("%q", text)
	}
	const most = 300
	if len(s) > most {
		s = fmt.Sprintf("%s... (%d bytes)", s[:most], len(s))
	}
	return s
}
