// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"encoding/json"
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

// The JSON of a value without opaque JSON is that of encoding/json.
func TestTexts_AppendJSON(t *testing.T) {
	v := map[string]any{"a": []any{int64(1), map[string]any{"b<": 1.5}}, "data": nil, "e": map[string]any{}}
	texts := &Texts{Keys: map[string]*Texts{"a": {Elements: map[int]*Texts{0: {Text: []byte("1.0")}}}, "absent": {Text: []byte("2")}}}
	got, err := texts.AppendJSON([]byte(" "), v)
	if want := ` {"a":[1.0,{"b\u003c":1.5}],"data":null,"e":{}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, empty := range []any{map[string]any{}, []any{}} {
		texts := &Texts{Keys: texts.Keys, Elements: map[int]*Texts{0: {Text: []byte("1.0")}}}
		want, _ := json.Marshal(empty) // all its types can be encoded
		if got, err := texts.AppendJSON(nil, empty); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s, %v", got, err)
		}
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
	twice, err := OpaqueTexts(append(AppendArrayHead(nil, 1), opaqueObject(`{"a":[{"b":1,"b":2}]}`)...))
	if err != nil || !errors.Is(twice.Check(), ErrType) {
		t.Errorf("a key that appears twice: %v, %v", err, twice.Check())
	}
}

// TestMayHaveOpaque_FindsEachForm at the start, within and at the end of other bytes, which may look alike.
func TestMayHaveOpaque_FindsEachForm(t *testing.T) {
	for _, n := range []int{2, 300, 70000} {
		js := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, n-2)...), '"')
		for _, around := range [][]byte{nil, {0x01}, {0xc7, 0xc8, 0xc9}, {0x01, 0x01, 0x02}} {
			if b := append(AppendOpaque(bytes.Clone(around), js), around...); !mayHaveOpaque(b) {
				t.Errorf("%d bytes of JSON between %x: not found", n, around)
			}
			if mayHaveOpaque(around) {
				t.Errorf("%x: found", around)
			}
		}
	}
}
