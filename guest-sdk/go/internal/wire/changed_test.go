// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestAppendChanged_LeavesOutWhatIsEqual: for random values and changed copies,
// the result is that of Append without the keys with equal values.
func TestAppendChanged_LeavesOutWhatIsEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		was := randomly(r, 4)
		now := randomly(r, 4)
		same := reflect.ValueOf(&now).Elem()
		for i := range same.NumField() {
			if f := same.Field(i); f.CanSet() && r.IntN(3) > 0 {
				f.Set(reflect.ValueOf(&was).Elem().Field(i))
			}
		}
		a, b, ok, err := AppendChanged(nil, nil, &was, &now)
		if !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		from, to := decoded(t, must(t, &was)), decoded(t, must(t, &now))
		gotFrom, gotTo := decoded(t, a), decoded(t, b)
		for key := range from {
			if _, ok := gotFrom[key]; !ok && reflect.DeepEqual(from[key], to[key]) {
				delete(from, key)
				delete(to, key)
			}
		}
		if !reflect.DeepEqual(gotFrom, from) || !reflect.DeepEqual(gotTo, to) {
			t.Fatalf("of\n%v\nand\n%v\nis written\n%v\n%v", from, to, gotFrom, gotTo)
		}
	}
}

// TestAppendChanged_SeesEqualCopies: values that share no memory are compared
// by content.
func TestAppendChanged_SeesEqualCopies(t *testing.T) {
	of := func() *sample {
		on := true
		return &sample{
			Name: "a", On: &on, Labels: map[string]string{"a": "1"}, Items: []sample{{Name: "inner", Labels: map[string]string{}}},
			Secret: []byte("s"), Pointed: &Pointed{Deep: "d"},
		}
	}
	was, now := of(), of()
	now.Items[0].Name = "other"
	a, b, ok, err := AppendChanged(nil, nil, was, now)
	if !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if from, to := decoded(t, a), decoded(t, b); len(from) != 1 || len(to) != 1 || from["items"] == nil || to["items"] == nil {
		t.Errorf("got %v and %v, want items only", from, to)
	}
	for _, other := range []any{*now, nil, "text", &struct{ A int }{}, (*sample)(nil), &byValue{}} {
		if _, _, ok, _ := AppendChanged(nil, nil, other, now); ok {
			t.Errorf("%T was compared with %T", other, now)
		}
	}
}

// TestAppendChanged_LosesNothingThatIsHidden: a changed value that cannot be
// encoded is an error, as for Append.
func TestAppendChanged_LosesNothingThatIsHidden(t *testing.T) {
	type hidden struct{ n int }
	type holder struct{ H hidden }
	if _, _, _, err := AppendChanged(nil, nil, &holder{hidden{1}}, &holder{hidden{2}}); err == nil {
		t.Error("a change was lost")
	}
}

func decoded(t *testing.T, msg []byte) map[string]any {
	t.Helper()
	v, err := Decode(msg)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any) //nolint:forcetypeassert // a struct is a map
}
