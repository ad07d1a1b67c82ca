// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// opaqueObject returns an object whose data is opaque JSON.
func opaqueObject(js string) []byte {
	b := AppendMapHead(nil, 2)
	b = AppendOpaque(appendString(b, "data"), []byte(js))
	return appendString(appendString(b, "kind"), "Ǉ") // its bytes include 0xc7
}

func TestOpaque_DecodesLikeTheValue(t *testing.T) {
	b := opaqueObject(` {"z":1.0,"a":2e0,"u":18446744073709551615,"i":-9223372036854775808,"s":"\u00e9","l":[null,true,{}],"z":1.5}`)
	if err := Check(b); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kind": "Ǉ", "data": map[string]any{
		"z": 1.5, "a": 2.0, "u": 18446744073709551615.0, "i": int64(-9223372036854775808), "s": "é", "l": []any{nil, true, map[string]any{}},
	}}
	got, err := DecodeValue(b)
	if err != nil || !reflect.DeepEqual(got, any(want)) {
		t.Errorf("%v, %v", got, err)
	}
	plain, err := Plain(b)
	canonical, _ := AppendValue(nil, want) // all its types can be encoded
	if err != nil || !bytes.Equal(plain, canonical) {
		t.Errorf("%x, %v", plain, err)
	}
	if again, err := Plain(plain); err != nil || &again[0] != &plain[0] {
		t.Errorf("a copy of a value without opaque JSON: %v", err)
	}
}

func TestOpaque_TextsHaveEveryByte(t *testing.T) {
	for _, size := range []int{0, 200, 300, 70_000} {
		js := `{"a": "` + strings.Repeat("x", size) + `"}`
		b := append(AppendArrayHead(nil, 2), opaqueObject(js)...)
		b = AppendOpaque(b, []byte("1.0"))
		texts, err := OpaqueTexts(b)
		if err != nil || string(texts.Elements[0].Keys["data"].Text) != js || string(texts.Elements[1].Text) != "1.0" {
			t.Errorf("%d: %v, %v", size, texts, err)
		}
	}
	if texts, err := OpaqueTexts(appendString(nil, "Ǉ")); texts != nil || err != nil {
		t.Errorf("%v, %v", texts, err)
	}
}

func TestOpaque_InvalidIsRefused(t *testing.T) {
	for _, b := range [][]byte{
		{0xc7}, {0xc7, 1}, {0xc7, 1, 1}, {0xc7, 0, 1}, {0xc7, 1, 1, '{'}, {0xc7, 1, 2, '1'}, {0xc8, 0, 1, 0xff, '1'}, {0xc9, 0xff, 0xff, 0xff, 0xff, 1, '1'},
	} {
		if err := Check(b); !errors.Is(err, ErrType) && !errors.Is(err, ErrTruncated) {
			t.Errorf("%x: %v", b, err)
		}
		if _, err := DecodeValue(b); err == nil {
			t.Errorf("%x is decoded", b)
		}
	}
	deep := AppendOpaque(nil, []byte(strings.Repeat("[", MaxDepth+1)+strings.Repeat("]", MaxDepth+1)))
	if _, err := DecodeValue(deep); !errors.Is(err, ErrTooDeep) {
		t.Errorf("deep: %v", err)
	}
	if _, err := OpaqueTexts(AppendOpaque(nil, []byte(`{"a":[{"b":1,"b":2}]}`))); !errors.Is(err, ErrType) {
		t.Errorf("a key that appears twice: %v", err)
	}
}
