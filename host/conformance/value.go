// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// object and list are the values in cases. They may contain a raw or a pairs.
type (
	object = map[string]any
	list   = []any
)

// raw is msgpack that is written unchanged.
type raw = msgpack.RawMessage

// pairs is a map whose keys have this order.
type pairs []pair

type pair struct {
	key   string
	value any
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (m pairs) EncodeMsgpack(e *msgpack.Encoder) error {
	err := e.EncodeMapLen(len(m))
	for _, p := range m {
		err = errors.Join(err, e.EncodeString(p.key), e.Encode(p.value))
	}
	return err
}

// encode encodes a value in msgpack. A failure is a mistake in a case.
func encode(v any) []byte {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.SetSortMapKeys(true)
	e.UseCompactInts(true)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("BUG: case: %T: %v", v, err))
	}
	return b.Bytes()
}

// plain returns v as decoded from msgpack: with int64 and float64 for all numbers.
func plain(v any) any {
	out, err := abi.DecodeValue(encode(v))
	if err != nil {
		panic(fmt.Sprintf("BUG: case: %v", err))
	}
	return out
}

// same returns the difference between a value and the expected one.
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

// alike is same for values in which empty parts are optional.
func alike(what string, got, want any) error { return same(what, prune(got), prune(plain(want))) }

// prune removes false, 0, "", nil and empty values from all maps.
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

// short shows a value in an error, or the start of a large one.
func short(v any) string {
	s := fmt.Sprintf("%#v", v)
	if str, ok := v.(string); ok {
		s = fmt.Sprintf("%q", str)
	}
	return text.Shorten(s, 300)
}
