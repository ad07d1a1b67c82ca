// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math/rand"
	"reflect"
	"testing"
)

// TestEdit_AgreesWithMaps sets and removes values at random paths of random
// objects, and compares with the same edits of Go maps.
func TestEdit_AgreesWithMaps(t *testing.T) {
	rnd := rand.New(rand.NewSource(7)) //nolint:gosec // a test
	keys := []string{"a", "b", "c", "a key of more than thirty-one bytes in all"}
	var random func(depth int) any
	random = func(depth int) any {
		if depth == 0 || rnd.Intn(3) == 0 {
			return []any{nil, int64(5), "x", true, []any{int64(1)}}[rnd.Intn(5)]
		}
		m := map[string]any{}
		for _, k := range keys {
			if rnd.Intn(2) == 0 {
				m[k] = random(depth - 1)
			}
		}
		return m
	}
	for range 5000 {
		doc := random(3)
		path := make([]string, rnd.Intn(4))
		for i := range path {
			path[i] = keys[rnd.Intn(len(keys))]
		}
		b, err := Append([]byte("before"), doc)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b[len("before"):], 0xc1) // other bytes may follow a view
		want, ok := modelSet(doc, path, int64(99))
		got, err := Set([]byte{0x93}, b, path, []byte{99})
		if ok != (err == nil) || !ok && !errors.Is(err, ErrType) {
			t.Fatalf("set %v of %v: %v, want it to work: %v", path, doc, err, ok)
		}
		compare(t, ok, got, want)
		if len(path) > 0 {
			got, err = Remove([]byte{0x93}, b, path)
			compare(t, err == nil, got, modelRemove(doc, path))
		}
	}
}

func compare(t *testing.T, ok bool, got []byte, want any) {
	t.Helper()
	if !ok {
		return
	}
	v, err := Decode(got[1:])
	if err != nil || got[0] != 0x93 || !reflect.DeepEqual(v, want) {
		t.Fatalf("got %v (%v), want %v", v, err, want)
	}
}

func modelSet(doc any, path []string, val any) (any, bool) {
	if len(path) == 0 {
		return val, true
	}
	m, ok := doc.(map[string]any)
	if doc != nil && !ok {
		return nil, false
	}
	inner, ok := modelSet(m[path[0]], path[1:], val)
	out := map[string]any{path[0]: inner}
	for k, v := range m {
		if k != path[0] {
			out[k] = v
		}
	}
	return out, ok
}

func modelRemove(doc any, path []string) any {
	m, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	out := map[string]any{}
	for k, v := range m {
		switch {
		case k != path[0]:
			out[k] = v
		case len(path) > 1:
			out[k] = modelRemove(v, path[1:])
		}
	}
	return out
}

// FuzzEdit_NeverPanics: an edit of arbitrary bytes gives a value or an error.
func FuzzEdit_NeverPanics(f *testing.F) {
	f.Add([]byte{0x81, 0xa1, 'a', 0x81, 0xa1, 'b', 1}, "a", "b")
	f.Add([]byte{0xde, 0xff, 0xff, 0xa1}, "a", "")
	f.Fuzz(func(t *testing.T, b []byte, k1, k2 string) {
		_, whole := Decode(b)
		for _, path := range [][]string{{k1}, {k1, k2}} {
			set, err := Set(nil, b, path, []byte{1})
			if whole == nil && err == nil && At(set, path) == nil {
				t.Errorf("%x: %q was not set in %x", b, path, set)
			}
			out, err := Remove(nil, b, path)
			if whole == nil && (err != nil || At(out, path) != nil) {
				t.Errorf("%x: %q was not removed: %x, %v", b, path, out, err)
			}
		}
	})
}
