// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type embedded struct {
	Kind string `json:"kind"`
}

type sample struct {
	embedded
	*Pointed
	Name     string            `json:"name"`
	Count    int32             `json:"count,omitempty"`
	Small    int8              `json:"small,omitempty"`
	Unsigned uint16            `json:"unsigned,omitempty"`
	Ratio    float64           `json:"ratio,omitempty"`
	On       *bool             `json:"on,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Items    []sample          `json:"items,omitempty"`
	Secret   []byte            `json:"secret,omitempty"`
	When     time.Time         `json:"when,omitempty"`
	Free     any               `json:"free,omitempty"`
	Other    string            `json:"json" msgpack:"other,omitempty"`
	Plain    string            `json:",omitempty"`
	Hidden   string            `json:"-"`
	private  string
}

type Pointed struct {
	Deep string `json:"deep,omitempty"`
}

func TestStruct_SurvivesTheRoundTrip(t *testing.T) {
	on := false
	want := sample{
		embedded: embedded{Kind: "Sample"}, Name: "a", Count: -7, Small: -128, Unsigned: 65535, Ratio: 0.5, On: &on,
		Labels: map[string]string{"b": "2", "a": "1"}, Items: []sample{{Name: "inner"}}, Secret: []byte("s3cret"),
		When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Free: map[string]any{"x": []any{int64(1), "2"}}, Other: "o", Plain: "p",
		Pointed: &Pointed{Deep: "d"},
	}
	msg := must(t, &want)
	if err := Check(msg); err != nil {
		t.Fatal(err)
	}
	var got sample
	if err := DecodeInto(msg, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestStruct_IsWrittenByItsTags(t *testing.T) {
	got, err := Decode(must(t, sample{Name: "a", Hidden: "h", private: "p", Secret: []byte("hi"), Other: "o"}))
	want := map[string]any{"kind": "", "name": "a", "secret": "aGk=", "other": "o"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestDecodeInto_RefusesWhatDoesNotFitAndNamesThePath(t *testing.T) {
	cases := []struct {
		msg  any
		path string
	}{
		{map[string]any{"count": int64(math.MaxInt32) + 1}, "count"},
		{map[string]any{"small": -129}, "small"},
		{map[string]any{"unsigned": -1}, "unsigned"},
		{map[string]any{"unsigned": 65536}, "unsigned"},
		{map[string]any{"name": 1}, "name"},
		{map[string]any{"items": []any{map[string]any{}, map[string]any{"labels": map[string]any{"x": true}}}}, "items.1.labels.x"},
		{map[string]any{"items": "none"}, "items"},
		{map[string]any{"secret": "%"}, "secret"},
		{map[string]any{"when": "yesterday"}, "when"},
	}
	for _, c := range cases {
		var s sample
		err := DecodeInto(must(t, c.msg), &s)
		var p *PathError
		if !errors.As(err, &p) || p.Path != c.path {
			t.Errorf("%v: error %v, want one at %s", c.msg, err, c.path)
		}
	}
}

// TestDecodeInto_CopiesStrings: the source memory is reused.
func TestDecodeInto_CopiesStrings(t *testing.T) {
	for _, size := range []int{smallValue / 4, 4 * smallValue} {
		want := map[string]any{"a": "text", "list": []any{strings.Repeat("x", size)}, "map": map[string]any{"key": "value"}}
		b, err := Append(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := DecodeInto(b, &got); err != nil {
			t.Fatal(err)
		}
		clear(b)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("with a text of %d bytes: a string changed with the memory that it came from", size)
		}
	}
}

func TestDecodeInto_LeavesWhatIsNilOrAbsent(t *testing.T) {
	s := sample{Name: "kept", Count: 3}
	if err := DecodeInto(must(t, map[string]any{"name": nil, "unknown": []any{1}}), &s); err != nil {
		t.Fatal(err)
	}
	if s.Name != "kept" || s.Count != 3 {
		t.Errorf("got %+v", s)
	}
	if err := DecodeInto(must(t, 1), s); err == nil {
		t.Error("a target that is no pointer was taken")
	}
}

func TestAppend_RefusesWhatHasNoForm(t *testing.T) {
	type loop struct{ Next *loop }
	endless := &loop{}
	endless.Next = endless
	cases := []struct {
		v    any
		want string
	}{
		{map[string]any{"a": map[string]any{"f": math.Inf(-1)}}, "a.f: number"},
		{map[string]any{"a": []any{0, "\xff"}}, "a.1: string is not UTF-8"},
		{map[bool]string{true: "a"}, "keys that are not text"},
		{struct{ hidden int }{1}, "no exported field"},
		{make(chan int), "chan int has no form"},
		{uint64(math.MaxUint64), "number"},
		{endless, "deeper than 128"},
	}
	for _, c := range cases {
		if _, err := Append(nil, c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: error %v, want one with %q", c.v, err, c.want)
		}
	}
}

func TestBuilder_KeepsTheMapAfterAValueThatFails(t *testing.T) {
	b := NewBuilder([]byte{0xc0})
	b.String("a", "1")
	if err := b.Value("bad", math.NaN()); err == nil {
		t.Fatal("NaN was taken")
	}
	b.Int("n", 5)
	b.String("empty", "")
	b.Bool("no", false)
	got, err := Decode(b.End()[1:])
	if want := (map[string]any{"a": "1", "n": int64(5)}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
