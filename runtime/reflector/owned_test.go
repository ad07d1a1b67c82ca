// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// ownedState returns an object with owners of these uids.
func ownedState(t *testing.T, ref reflector.ObjectRef, rv int, uids ...string) *reflector.Object {
	t.Helper()
	owners := make([]any, len(uids))
	for i, uid := range uids {
		owners[i] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "of-" + uid, "uid": uid}
	}
	meta := map[string]any{"name": ref.Name, "namespace": ref.Namespace, "uid": "u", "resourceVersion": fmt.Sprint(rv), "ownerReferences": owners}
	o, err := reflector.Pack(map[string]any{"metadata": meta}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestStore_OwnedIsWhatAScanFinds changes owners at random and compares the index with reading each object.
func TestStore_OwnedIsWhatAScanFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := reflector.NewWriter()
	model := map[reflector.ObjectRef]*reflector.Object{}
	uids := []string{"a", "b", "c", "c"}
	ignore := func(reflector.Event) {}
	for rv := 1; rv < 2000; rv++ {
		ref := reflector.ObjectRef{Namespace: string(rune('m' + r.IntN(2))), Name: string(rune('a' + r.IntN(12)))}
		r.Shuffle(len(uids), func(i, j int) { uids[i], uids[j] = uids[j], uids[i] })
		o := ownedState(t, ref, rv, uids[:r.IntN(4)]...)
		switch r.IntN(40) {
		case 0:
			model = map[reflector.ObjectRef]*reflector.Object{ref: o}
			w.Replace([]*reflector.Object{o}, fmt.Sprint(rv), ignore)
		case 1, 2, 3, 4, 5, 6:
			delete(model, ref)
			w.Delete(o, ignore)
		default:
			model[ref] = o
			w.Apply(o, ignore)
		}
		after := reflector.ObjectRef{Namespace: "m", Name: string(rune('a' + r.IntN(12)))}
		if r.IntN(3) == 0 {
			after = reflector.ObjectRef{}
		}
		uid, namespace := uids[0], []string{"", "m", "n"}[r.IntN(3)]
		var want []reflector.ObjectRef
		for ref, o := range model {
			owns := slices.ContainsFunc(slices.Collect(o.Owners()), func(w reflector.Owner) bool { return w.UID == uid })
			if owns && ref.Compare(after) > 0 && cmp.Or(namespace, ref.Namespace) == ref.Namespace {
				want = append(want, ref)
			}
		}
		slices.SortFunc(want, reflector.ObjectRef.Compare)
		var got []reflector.ObjectRef
		for o := range w.Store().Owned(uid, namespace, after) {
			if got = append(got, o.Ref()); o != model[o.Ref()] {
				t.Fatalf("%v is not the newest state", o.Ref())
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: owned by %s in %q after %v: %v, want %v of %v", rv, uid, namespace, after, got, want, slices.Collect(maps.Keys(model)))
		}
	}
}
