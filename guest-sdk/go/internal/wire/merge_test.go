// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestAppendMerge_IsTheDifference: for random values, the patch is the
// difference (RFC 7386) of their encodings, without duplicate keys.
func TestAppendMerge_IsTheDifference(t *testing.T) {
	r, made := rand.New(rand.NewPCG(9, 10)), 0
	for range 5000 {
		was, now := randomly(r, 4), randomly(r, 4)
		same := reflect.ValueOf(&now).Elem()
		for i := range same.NumField() {
			if f := same.Field(i); f.CanSet() && r.IntN(3) > 0 {
				f.Set(reflect.ValueOf(&was).Elem().Field(i))
			}
		}
		got, ok, err := AppendMerge(nil, &was, &now)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		made++
		if got, want := decoded(t, got), mergeOf(decoded(t, must(t, &was)), decoded(t, must(t, &now))); !reflect.DeepEqual(got, want) {
			t.Fatalf("of\n%+v\nand\n%+v\nis made\n%v\nwant\n%v", was, now, got, want)
		}
	}
	if made < 500 {
		t.Errorf("%d patches were made", made)
	}
}

// mergeOf implements RFC 7386 literally.
func mergeOf(from, to map[string]any) map[string]any {
	diff := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			diff[key] = nil
		}
	}
	for key, now := range to {
		was, had := from[key]
		wasMap, ok1 := was.(map[string]any)
		nowMap, ok2 := now.(map[string]any)
		if ok1 && ok2 {
			if inner := mergeOf(wasMap, nowMap); len(inner) > 0 {
				diff[key] = inner
			}
		} else if !had || !reflect.DeepEqual(was, now) {
			diff[key] = now
		}
	}
	return diff
}

// TestAppendMerge_LosesNothingThatIsHidden: a changed value that cannot be
// encoded is an error, and values other than two structs have no patch.
func TestAppendMerge_LosesNothingThatIsHidden(t *testing.T) {
	type hidden struct{ n int }
	type holder struct{ H *hidden }
	if _, _, err := AppendMerge(nil, &holder{&hidden{1}}, &holder{&hidden{2}}); err == nil {
		t.Error("a change that cannot be written got lost")
	}
	for _, other := range []any{holder{}, nil, "text", &struct{ A int }{}, (*holder)(nil)} {
		if _, ok, err := AppendMerge(nil, other, &holder{}); ok || err != nil {
			t.Errorf("%T: %v, %v", other, ok, err)
		}
	}
}
