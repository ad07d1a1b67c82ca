// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// Types with methods of their own, in each way that encoding/json supports.
type (
	byValue   struct{ s string }
	byPointer struct{ N int }
	asText    struct{ s string }
	textKey   struct{ a, b byte }
	namedMap  map[string]int
	bytesType []byte
)

func (v byValue) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{"is": v.s}) }
func (v *byValue) UnmarshalJSON(b []byte) error {
	var m map[string]string
	err := json.Unmarshal(b, &m)
	v.s = m["is"]
	return err
}

func (v *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal(v.N + 1) }
func (v *byPointer) UnmarshalJSON(b []byte) error { err := json.Unmarshal(b, &v.N); v.N--; return err }
func (v *byPointer) IsZero() bool                 { return v.N == 7 }
func (v asText) MarshalText() ([]byte, error)     { return []byte("<" + v.s + ">"), nil }
func (v *asText) UnmarshalText(b []byte) error    { v.s = strings.Trim(string(b), "<>"); return nil }
func (v textKey) MarshalText() ([]byte, error)    { return []byte{'k', v.a, v.b}, nil }
func (v *textKey) UnmarshalText(b []byte) error   { v.a, v.b = b[1], b[2]; return nil }
func (m namedMap) MarshalJSON() ([]byte, error)   { return json.Marshal(len(m)) }
func (m *namedMap) UnmarshalJSON(b []byte) error  { *m = namedMap{string(b): 1}; return nil }

var _ encoding.TextMarshaler = asText{}

type inner struct {
	Name  string `json:"name"`
	Depth int    `json:"depth,omitempty"`
}

// Inner2 has field names that inner and everything also have.
type Inner2 struct {
	Name  string `json:"name"`
	Other int    `json:"Plain"`
	Kind  string `json:"kind,omitempty"`
}

type everything struct {
	inner   `json:",inline"`
	*Inner2 `json:",inline"`
	Named   inner `json:"inner"`

	Plain    int
	Quoted   int64       `json:"quoted,string"`
	QuotedP  *bool       `json:"quotedP,omitempty,string"`
	QuotedS  string      `json:"quotedS,string,omitempty"`
	Float    float64     `json:"float"`
	Float32  float32     `json:"float32,omitempty"`
	Empty    [0]int      `json:"empty,omitempty"`
	Fixed    [2]string   `json:"fixed"`
	Zero     byValue     `json:"zero,omitzero"`
	Value    byValue     `json:"value"`
	Pointer  *byValue    `json:"pointer,omitempty"`
	Pointed  byPointer   `json:"pointed,omitzero"`
	Pointers []byPointer `json:"pointers"`
	Text     asText      `json:"text"`
	Texts    map[string]asText
	Keys     map[textKey]int `json:"keys,omitempty"`
	Numbers  map[int8]string `json:"numbers"`
	Unsigned map[uint16]bool `json:"unsigned,omitempty"`
	Map      namedMap        `json:"map"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Bytes    bytesType       `json:"bytes"`
	Any      any             `json:"any,omitempty"`
	Next     *everything     `json:"next,omitempty"`
	List     []*everything   `json:"list"`
	Strings  map[string]string
	hidden   int
}

// randomly returns a value whose amount of data depends on size.
func randomly(r *rand.Rand, size int) everything {
	texts := []string{"", "a", "\"quoted\" \\ <&>", "é世\n", strings.Repeat("long ", 60)}
	text := func() string { return texts[r.IntN(len(texts))] }
	some := func() bool { return r.IntN(2) == 0 }
	e := everything{
		inner: inner{text(), r.IntN(3)}, Named: inner{text(), r.IntN(1000) - 500}, Plain: r.IntN(2), Quoted: r.Int64() - 1<<62, Float: r.NormFloat64(),
		Float32: float32(r.NormFloat64()), Fixed: [2]string{text(), text()}, Value: byValue{text()}, Text: asText{"x"}, Pointed: byPointer{r.IntN(2) * 7},
		hidden: 1,
	}
	if some() {
		e.Inner2 = &Inner2{text(), r.IntN(9), text()}
		e.Zero, e.Pointer, e.QuotedP, e.QuotedS = byValue{text()}, &byValue{text()}, new(bool), text()
		e.Pointers = []byPointer{{1}, {7}}
		e.Texts, e.Keys = map[string]asText{text(): {"y"}}, map[textKey]int{{'a', 'b'}: 1, {'c', 'd'}: 2}
		e.Numbers, e.Unsigned = map[int8]string{-128: text(), 127: ""}, map[uint16]bool{65535: true}
		e.Map, e.Raw, e.Bytes = namedMap{"1": 1}, json.RawMessage(`{"free":[1,null,"x"]}`), bytesType(text())
		e.Any, e.Strings = map[string]any{"a": []any{text(), true, nil, 1.5}}, map[string]string{text(): text()}
	}
	for i := 0; size > 1 && i < r.IntN(3); i++ {
		next := randomly(r, size/2)
		e.Next, e.List = &next, append(e.List, nil, &next)
	}
	return e
}

// TestPlan_IsLikeJSON encodes random values with msgpack and with
// encoding/json, and decodes both.
func TestPlan_IsLikeJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		in := randomly(r, 8)
		js := mustJSON(t, &in)
		msg := must(t, &in)
		own, err := AppendAsJSON(nil, msg)
		if err != nil || !reflect.DeepEqual(parsed(t, own), parsed(t, js)) {
			t.Fatalf("%v: wrote\n%s\nwant\n%s", err, own, js)
		}
		var want, got everything
		if err := json.Unmarshal(js, &want); err != nil {
			t.Fatal(err)
		}
		if err := DecodeInto(msg, &got); err != nil {
			t.Fatalf("%v\n%s", err, js)
		}
		if w, g := must(t, &want), must(t, &got); !reflect.DeepEqual(w, g) {
			t.Fatalf("read\n%+v\nwant\n%+v", got, want)
		}
	}
}

func parsed(t *testing.T, js []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(js, &v); err != nil {
		t.Fatalf("%v: %s", err, js)
	}
	return v
}

// TestPlan_NilIsLikeJSON: null clears variables that can be nil, and does not
// change the others.
func TestPlan_NilIsLikeJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	full := randomly(r, 1)
	for full.Inner2 == nil {
		full = randomly(r, 1)
	}
	nulls := map[string]any{}
	for name := range parsed(t, mustJSON(t, full)).(map[string]any) { //nolint:forcetypeassert // a struct is an object
		nulls[name] = nil
	}
	for _, name := range []string{"value", "zero", "pointed"} { // their methods handle null differently
		delete(nulls, name)
	}
	want, got := full, full
	if err := json.Unmarshal(mustJSON(t, nulls), &want); err != nil {
		t.Fatal(err)
	}
	if err := DecodeInto(must(t, nulls), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(mustJSON(t, got), mustJSON(t, want)) {
		t.Errorf("got\n%s\nwant\n%s", mustJSON(t, got), mustJSON(t, want))
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it would change the value of a quoted string
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type failing struct{}

var errFailing = errors.New("no such thing")

func (failing) MarshalJSON() ([]byte, error)  { return nil, errFailing }
func (*failing) UnmarshalJSON(_ []byte) error { return errFailing }

func TestPlan_ErrorsOfMethodsNameThePath(t *testing.T) {
	_, err := Append(nil, map[string][]failing{"a": {{}}})
	var p *PathError
	if !errors.Is(err, errFailing) || !errors.As(err, &p) || p.Path != "a.0" {
		t.Errorf("write: %v", err)
	}
	var into struct{ A []failing }
	err = DecodeInto(must(t, map[string]any{"A": []any{1}}), &into)
	if !errors.Is(err, errFailing) || !errors.As(err, &p) || p.Path != "A.0" {
		t.Errorf("read: %v", err)
	}
}
