// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"reflect"
	"testing"
)

// revision is an object with opaque JSON.
type revision struct {
	Data json.RawMessage `json:"data,omitempty"`
}

const letters = `{"z":1.0, "a":2e0,"u":18446744073709551615,"n":-0.0,"s":"<&>\u00e9","list":[{"b":1.10}]}`

// withCaps sets the abilities of the host for a test.
func withCaps(t *testing.T, caps ...string) {
	t.Helper()
	Caps = must(t, caps)
	t.Cleanup(func() { Caps = nil })
}

func TestOpaque_IsUnchangedInBothDirections(t *testing.T) {
	withCaps(t, "declare", CapOpaque)
	msg := must(t, &revision{Data: json.RawMessage(letters)})
	if err := Check(msg); err != nil {
		t.Fatal(err)
	}
	var got revision
	if err := DecodeInto(msg, &got); err != nil || string(got.Data) != letters {
		t.Errorf("%s, %v", got.Data, err)
	}
	js, err := AppendAsJSON(nil, msg)
	if err != nil || string(js) != `{"data":`+letters+`}` {
		t.Errorf("%s, %v", js, err)
	}
	changed, err := Set(nil, msg, []string{"metadata", "name"}, AppendString(nil, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := DecodeInto(changed, &got); err != nil || string(got.Data) != letters {
		t.Errorf("%s, %v", got.Data, err)
	}
}

// A host that does not know opaque JSON gets the values.
func TestOpaque_IsOnlyForHostsThatKnowIt(t *testing.T) {
	withCaps(t, "declare")
	msg := must(t, &revision{Data: json.RawMessage(`{"a":1}`)})
	if got := Get(msg, "data"); TypeOf(got) != Map {
		t.Errorf("%x", got)
	}
}

func TestOpaque_ReadsLikeTheValue(t *testing.T) {
	withCaps(t, CapOpaque)
	js := `{"a":{"b":[1,"x"]},"t":true,"s":"text"}`
	msg := must(t, &revision{Data: json.RawMessage(js)})
	var want any
	if err := json.Unmarshal([]byte(`{"data":{"a":{"b":[1,"x"]},"t":true,"s":"text"}}`), &want); err != nil {
		t.Fatal(err)
	}
	v, err := Decode(msg)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(v); err != nil || !sameJSON(t, again, want) {
		t.Errorf("%s, %v", again, err)
	}
	if s, _ := StringBytes(At(msg, []string{"data", "s"})); string(s) != "text" {
		t.Errorf("%s", s)
	}
	if n, _ := Len(At(msg, []string{"data", "a", "b"})); n != 2 {
		t.Errorf("%d elements", n)
	}
	var typed struct {
		Data struct {
			A map[string][]any `json:"a"`
			T bool             `json:"t"`
			S string           `json:"s"`
		} `json:"data"`
	}
	if err := DecodeInto(msg, &typed); err != nil || len(typed.Data.A["b"]) != 2 || !typed.Data.T || typed.Data.S != "text" {
		t.Errorf("%+v, %v", typed, err)
	}
	var texts struct {
		Data map[string]any `json:"data"`
	}
	if err := DecodeInto(msg, &texts); err != nil || len(texts.Data) != 3 {
		t.Errorf("%+v, %v", texts, err)
	}
	set, err := Set(nil, msg, []string{"data", "s"}, AppendString(nil, "new"))
	if s, _ := StringBytes(At(set, []string{"data", "s"})); err != nil || string(s) != "new" {
		t.Errorf("%s, %v", s, err)
	}
	removed, err := Remove(nil, msg, []string{"data", "a"})
	if n, _ := Len(At(removed, []string{"data"})); err != nil || n != 2 {
		t.Errorf("%d keys, %v", n, err)
	}
}

func sameJSON(t *testing.T, js []byte, want any) bool {
	t.Helper()
	var got any
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(got, want)
}

// Invalid forms are refused, and never read outside of the message.
func TestOpaque_InvalidForms(t *testing.T) {
	for _, b := range [][]byte{{0xc7}, {0xc7, 1}, {0xc7, 1, 1}, {0xc7, 0, 2}, {0xc8, 0, 1, 1}, {0xc9, 0xff, 0xff, 0xff, 0xff, 1}, {0xc7, 1, 5, '1'}} {
		if err := Check(b); err == nil {
			t.Errorf("%x is accepted", b)
		}
		if end := Skip(b, 0); end >= 0 {
			t.Errorf("%x ends at %d", b, end)
		}
	}
}
