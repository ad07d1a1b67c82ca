// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// indexFixture is a store with an index of owners, and their expected values.
type indexFixture struct {
	t      *testing.T
	r      *rand.Rand
	w      *reflector.Writer
	model  map[reflector.ObjectRef]*reflector.Object
	told   map[reflector.ObjectRef]*reflector.Object // the state that the index knows
	told1  *abi.Index
	fields *abi.Index
}

// ownersOf returns the values of the index.
func ownersOf(o *reflector.Object) (uids []string) {
	for w := range o.Owners() {
		uids = append(uids, w.UID)
	}
	return uids
}

func entryOf(o *reflector.Object) abi.IndexEntry {
	return abi.IndexEntry{Namespace: o.Ref().Namespace, Name: o.Ref().Name, UID: o.UID(), ResourceVersion: o.ResourceVersion(), Values: ownersOf(o)}
}

// step changes the store at random.
func (f *indexFixture) step(rv int) {
	ref := reflector.ObjectRef{Namespace: string(rune('m' + f.r.IntN(2))), Name: string(rune('a' + f.r.IntN(20)))}
	uids := []string{"a", "b", "c", "c"}
	f.r.Shuffle(len(uids), func(i, j int) { uids[i], uids[j] = uids[j], uids[i] })
	o := ownedState(f.t, ref, rv, uids[:f.r.IntN(4)]...)
	switch n := f.r.IntN(60); {
	case n == 0:
		f.model, f.told = map[reflector.ObjectRef]*reflector.Object{ref: o}, map[reflector.ObjectRef]*reflector.Object{}
		f.w.Replace([]*reflector.Object{o}, fmt.Sprint(rv), func(reflector.Event) {})
	case n < 12:
		delete(f.model, ref)
		f.w.Delete(o, func(reflector.Event) {})
	case n < 30:
		f.model[ref] = o
		f.w.Apply(o, func(reflector.Event) {})
	case f.model[ref] != nil:
		f.w.Store().Learn(f.told1, []abi.IndexEntry{entryOf(o), entryOf(f.model[ref])}) // it has no state of o
		f.told[ref] = f.model[ref]
	}
}

// want returns the expected result of a list with an index.
func (f *indexFixture) want(index *abi.Index, namespace string, after reflector.ObjectRef) (refs []reflector.ObjectRef) {
	for ref, o := range f.model {
		known := index.Of != nil || f.told[ref] == o
		if known && !slices.Contains(ownersOf(o), index.Value) {
			continue
		}
		if ref.Compare(after) > 0 && cmp.Or(namespace, ref.Namespace) == ref.Namespace {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, reflector.ObjectRef.Compare)
	return refs
}

// TestStore_IndexedIsWhatAScanFinds changes objects at random, and adds some of them to an index. A list with it
// returns the objects with the value, and those whose current state it has not received; one with an index that reads
// objects itself returns only the former.
func TestStore_IndexedIsWhatAScanFinds(t *testing.T) {
	byData := func(packed []byte) []string { return ownersIn(t, packed) }
	f := &indexFixture{
		t: t, r: rand.New(rand.NewPCG(7, 8)), w: reflector.NewWriter(),
		model: map[reflector.ObjectRef]*reflector.Object{}, told: map[reflector.ObjectRef]*reflector.Object{},
		told1: &abi.Index{Name: "told"}, fields: &abi.Index{Name: "fields", Of: byData},
	}
	for rv := 1; rv < 4000; rv++ {
		value, namespace := string(rune('a'+f.r.IntN(4))), []string{"", "m", "n"}[f.r.IntN(3)]
		f.told1.Value, f.fields.Value = value, value
		after := reflector.ObjectRef{}
		if f.r.IntN(3) > 0 {
			after = reflector.ObjectRef{Namespace: "m", Name: string(rune('a' + f.r.IntN(20)))}
		}
		for _, index := range []*abi.Index{f.told1, f.fields} {
			var got []reflector.ObjectRef
			for o := range f.w.Store().Indexed(index, namespace, after) {
				if got = append(got, o.Ref()); o != f.model[o.Ref()] {
					t.Fatalf("%v is not the newest state", o.Ref())
				}
			}
			if want := f.want(index, namespace, after); !slices.Equal(got, want) {
				t.Fatalf("step %d: index %s of %s in %q after %v: %v, want %v", rv, index.Name, value, namespace, after, got, want)
			}
		}
		f.step(rv)
	}
}

// ownersIn reads the owners from the bytes of an object.
func ownersIn(t *testing.T, packed []byte) (uids []string) {
	object, err := abi.DecodeObject(packed)
	if err != nil {
		t.Fatal(err)
	}
	owners, _ := object["metadata"].(map[string]any)["ownerReferences"].([]any)
	for _, w := range owners {
		uids = append(uids, w.(map[string]any)["uid"].(string))
	}
	return uids
}

// TestStore_IndexesAreBounded: excess entries are not stored, the least recently used index makes room for others of
// its scope, an unused one is removed, and lists remain correct.
func TestStore_IndexesAreBounded(t *testing.T) {
	w := reflector.NewWriter()
	o := ownedState(t, name("a"), 1, "u")
	w.Apply(o, func(reflector.Event) {})
	lists := func(index *abi.Index) int {
		n := 0
		for range w.Store().Indexed(index, "", reflector.ObjectRef{}) {
			n++
		}
		return n
	}
	tell := func(index *abi.Index, values ...string) {
		e := entryOf(o)
		e.Values = values
		w.Store().Learn(index, []abi.IndexEntry{e})
	}
	first := &abi.Index{Name: "first", Value: "x"}
	if tell(first, "other"); lists(first) != 1 {
		t.Error("an index that nobody has asked for was told something")
	}
	if tell(first, strings.Repeat("v", 5000)); lists(first) != 1 {
		t.Error("a value of 5,000 bytes is kept")
	}
	if tell(first, make([]string, 65)...); lists(first) != 1 {
		t.Error("65 values are kept")
	}
	if tell(first, "other"); lists(first) != 0 {
		t.Error("the index does not know what it was told")
	}
	if lists(&abi.Index{Scope: 1, Name: "first", Value: "x"}) != 1 {
		t.Error("another scope has the same index")
	}
	for i := range 70 {
		if lists(&abi.Index{Scope: 1, Name: fmt.Sprint(i), Value: "x"}) != 1 {
			t.Error("a new index knows something")
		}
	}
	if lists(first) != 0 {
		t.Error("seventy indexes of another scope took the room of this one")
	}
	if tell(&abi.Index{Scope: 1, Name: "0"}, "other"); lists(&abi.Index{Scope: 1, Name: "0", Value: "x"}) != 1 {
		t.Error("the index that was asked for first is kept beside seventy others")
	}
	for i := range 2000 {
		w.Apply(ownedState(t, name("b"), i+2, "u"), func(reflector.Event) {})
	}
	if lists(first) != 2 {
		t.Error("an index is kept for 2,000 changes without being asked")
	}
}

// TestStore_IndexesTakeNoMoreThanObjects: a module that adds many values for small objects makes its own index forget,
// and not the process grow.
func TestStore_IndexesTakeNoMoreThanObjects(t *testing.T) {
	w := reflector.NewWriter()
	const objects = 3000
	var entries []abi.IndexEntry
	for i := range objects {
		o := ownedState(t, name(fmt.Sprint(i)), 1, "u")
		w.Apply(o, func(reflector.Event) {})
		e := entryOf(o)
		e.Values = []string{strings.Repeat("v", 4000)}
		entries = append(entries, e)
	}
	index := &abi.Index{Name: "large", Value: "x"}
	for range 2 {
		unknown := 0
		for range w.Store().Indexed(index, "", reflector.ObjectRef{}) {
			unknown++
		}
		w.Store().Learn(index, entries)
		if known := objects - unknown; known*4000 > 4<<20+int(w.Store().Bytes()) {
			t.Errorf("the index keeps %d values of 4,000 bytes, the store has %d bytes", known, w.Store().Bytes())
		} else if unknown < objects && known < 900 {
			t.Errorf("the index keeps %d values only", known)
		}
	}
}
