// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

type head struct {
	Type string `json:"type,omitempty"`
}

type document struct {
	head

	Digest string            `json:"digest"`
	Layers []layer           `json:"layers"`
	Config *layer            `json:"config"`
	Labels map[string]string `json:"labels"`
	ByName map[string]layer  `json:"byName"`
	Raw    json.RawMessage   `json:"raw"`
	Own    own               `json:"own"`
	Any    any               `json:"any"`
	Hidden string            `json:"-"`
}

type layer struct {
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

// own decodes itself.
type own struct{ text string }

func (o *own) UnmarshalJSON(b []byte) error { o.text = string(b); return nil }

// TestUnmarshal_RefusesKeysThatReadersDisagreeOn: a key that appears twice is refused everywhere, and
// one in another case wherever a field has it.
func TestUnmarshal_RefusesKeysThatReadersDisagreeOn(t *testing.T) {
	for content, want := range map[string]string{
		`{"digest":"a","digest":"b"}`:                           `key "digest": appears twice`,
		`{"digest":"a","Digest":"b"}`:                           `key "Digest": differs from "digest" by case only`,
		`{"Digest":"b"}`:                                        `key "Digest": differs from "digest" by case only`,
		`{"TYPE":"b"}`:                                          `key "TYPE": differs from "type" by case only`,
		`{"labelſ":{}}`:                                         `differs from "labels" by case only`,
		`{"layers":[{},{"digest":"a","DIGEST":"b"}]}`:           `key "layers[1].DIGEST"`,
		`{"config":{"Size":1}}`:                                 `key "config.Size"`,
		`{"byName":{"x":{"siZe":1}}}`:                           `key "byName.x.siZe"`,
		`{"labels":{"a":"1","a":"2"}}`:                          `key "labels.a": appears twice`,
		`{"raw":[{"x":{"y":1,"y":2}}]}`:                         `key "raw[0].x.y": appears twice`,
		`{"own":{"y":1,"y":2}}`:                                 `key "own.y": appears twice`,
		`{"any":{"y":1,"y":2}}`:                                 `key "any.y": appears twice`,
		`{"other":[[{"y":1,"y":2}]]}`:                           `key "other[0][0].y": appears twice`,
		`{"labels":{"\ud800":"1","\ud801":"2"}}`:                `appears twice`, // both become U+FFFD
		`{"layers":[{}`:                                         `unexpected end`,
		`{"layers":1}`:                                          `cannot unmarshal`,
		strings.Repeat(`[`, 9_000) + strings.Repeat(`]`, 9_000): `cannot unmarshal`,
		`{"any":` + strings.Repeat(`{"any":`, 9_000) + `{"a":1,"a":2}` + strings.Repeat(`}`, 9_001): `appears twice`,
	} {
		err := Unmarshal([]byte(content), &document{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: error %.200v, want %s", content, err, want)
		}
	}
}

// TestUnmarshal_AcceptsOtherKeys: a format may have more keys than are read, and keys of maps are in
// any case.
func TestUnmarshal_AcceptsOtherKeys(t *testing.T) {
	const content = `{"type":"t","digest":"d","labels":{"a":"1","A":"2"},"more":{"Digest":1,"digest":2},"Hidden":1,"any":{"b":1e999,"B":2},"layers":[{"size":3,"annotations":{"x":"y"}}],"config":null}`
	var got document
	if err := Unmarshal([]byte(strings.Replace(content, "1e999", "1", 1)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "t" || got.Digest != "d" || len(got.Labels) != 2 || got.Layers[0].Size != 3 {
		t.Errorf("%+v", got)
	}
	if err := Unmarshal([]byte(content), &got); err == nil {
		t.Error("a number is out of range, and there is no error")
	}
}

// TestUnmarshalKnown_RefusesUnknownKeys: the error has the key that was probably meant.
func TestUnmarshalKnown_RefusesUnknownKeys(t *testing.T) {
	for content, want := range map[string]string{
		`{"digets":"a"}`:          `key "digets": is unknown; did you mean "digest"?`,
		`{"layers":[{"name":1}]}`: `key "layers[0].name": is unknown; want one of digest, size`,
		`{"Hidden":""}`:           `is unknown`,
	} {
		err := UnmarshalKnown([]byte(content), &document{})
		if _, ok := errors.AsType[*KeyError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", content, err, want)
		}
	}
	if err := UnmarshalKnown([]byte(`{"digest":"a","any":{"x":1},"labels":{"y":"z"}}`), &document{}); err != nil {
		t.Error(err)
	}
}

// FuzzUnmarshal checks that two other readers, one of which ignores the case of keys, agree on what is accepted.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"type":"t","digest":"a","layers":[{"digest":"b","size":1}],"labels":{"a":"b"},"byName":{"x":{}},"raw":1,"own":[],"any":{}}`,
		`{"digest":"a","Digest":"b"}`, `{"config":{"size":1,"SIZE":2}}`, `{"any":{"a":1,"a":2}}`, `[]`, `null`, `{"layers":[{"Digest":"x"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var got, exact, folded document
		if Unmarshal(content, &got) != nil {
			return
		}
		strict, err := kjson.UnmarshalStrict(content, &exact, kjson.DisallowDuplicateFields)
		if err != nil || len(strict) > 0 || json.Unmarshal(content, &folded) != nil {
			t.Fatalf("%s: a strict reader refuses it: %v %v", content, err, strict)
		}
		exact.Any, folded.Any, got.Any = nil, nil, nil // numbers have other types
		if !reflect.DeepEqual(got, exact) || !reflect.DeepEqual(got, folded) {
			t.Fatalf("%s: readers disagree:\n%+v\n%+v\n%+v", content, got, exact, folded)
		}
	})
}
