// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// state returns an object with little more than its identity.
func state(t testing.TB, ref reflector.ObjectRef, uid, rv int) *reflector.Object {
	t.Helper()
	meta := map[string]any{"name": ref.Name, "uid": fmt.Sprint("u", uid), "resourceVersion": fmt.Sprint(rv)}
	if ref.Namespace != "" {
		meta["namespace"] = ref.Namespace
	}
	o, err := reflector.Pack(map[string]any{"metadata": meta, "pad": strings.Repeat("x", rv%50)}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func name(s string) reflector.ObjectRef { return reflector.ObjectRef{Name: s} }

// show formats an event, such as "Applied a u1/1 -> u1/2".
func show(e reflector.Event) string {
	s := func(o *reflector.Object) string {
		if o == nil {
			return "-"
		}
		return o.UID() + "/" + o.ResourceVersion()
	}
	return fmt.Sprintf("%s %s %s -> %s", e.Type, e.Ref(), s(e.Old), s(e.New))
}

type recorder []string

func (r *recorder) emit(e reflector.Event) { *r = append(*r, show(e)) }

func (r *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	got := slices.Sorted(slices.Values(*r))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	*r = nil
}

func TestWriter_AppliedAddsAndUpdates(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Apply(state(t, name("a"), 1, 1), got.emit)
	got.expect(t, "Applied a - -> u1/1")
	w.Apply(state(t, name("a"), 1, 2), got.emit)
	got.expect(t, "Applied a u1/1 -> u1/2")
	if rv := w.Store().Get(name("a")).ResourceVersion(); rv != "2" || w.Store().Len() != 1 {
		t.Errorf("store has resourceVersion %s, %d objects", rv, w.Store().Len())
	}
}

func TestWriter_DeletedRemoves(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Apply(state(t, name("a"), 1, 1), func(reflector.Event) {})
	w.Delete(state(t, name("a"), 1, 2), got.emit)
	w.Delete(state(t, name("a"), 1, 2), got.emit) // unknown: nothing
	got.expect(t, "Deleted a u1/1 -> u1/2")
	if w.Store().Get(name("a")) != nil || w.Store().Len() != 0 || w.Store().Bytes() != 0 {
		t.Error("object is still there")
	}
}

// Rule 11: a relist turns missing objects into deletions, emits nothing for unchanged ones, and detects
// delete-and-recreate by the uid.
func TestWriter_ReplaceEmitsOnlyDifferences(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Replace([]*reflector.Object{
		state(t, name("same"), 1, 1), state(t, name("changed"), 2, 1),
		state(t, name("gone"), 3, 1), state(t, name("recreated"), 4, 1),
	}, "1", got.emit)
	got.expect(t, "Relisted same - -> u1/1", "Relisted changed - -> u2/1", "Relisted gone - -> u3/1", "Relisted recreated - -> u4/1")
	same := w.Store().Get(name("same"))

	w.Replace([]*reflector.Object{
		state(t, name("same"), 1, 1), state(t, name("changed"), 2, 5),
		state(t, name("recreated"), 9, 6), state(t, name("new"), 5, 7),
	}, "7", got.emit)
	got.expect(t, "Relisted changed u2/1 -> u2/5", "Deleted gone u3/1 -> -",
		"Deleted recreated u4/1 -> -", "Relisted recreated - -> u9/6", "Relisted new - -> u5/7")
	if w.Store().Get(name("same")) != same {
		t.Error("an unchanged object was replaced by its copy")
	}

	w.Replace(w.Store().List(), "8", got.emit)
	got.expect(t)
}

// Rule 11: the uid also identifies a recreated object on the watch, and the two events come in the order in which they
// happened.
func TestWriter_RecreatedObjectIsDeletedThenCreated(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Apply(state(t, name("a"), 1, 1), func(reflector.Event) {})
	w.Apply(state(t, name("a"), 2, 3), got.emit)
	if diff := cmp.Diff(recorder{"Deleted a u1/1 -> -", "Applied a - -> u2/3"}, got); diff != "" {
		t.Error(diff)
	}
}

// Rule 12: a known state emits nothing.
func TestWriter_KnownStateEmitsNothing(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Apply(state(t, name("a"), 1, 1), func(reflector.Event) {})
	w.Apply(state(t, name("a"), 1, 1), got.emit)
	got.expect(t)
}

// Rule 12: an older state, or the deletion of an object that has been created again, is late and changes nothing. If
// versions are not numbers, this cannot be detected.
func TestWriter_LateEventsChangeNothing(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Apply(state(t, name("a"), 2, 7), func(reflector.Event) {})
	w.Apply(state(t, name("a"), 2, 6), got.emit)
	w.Apply(state(t, name("a"), 1, 5), got.emit)
	w.Delete(state(t, name("a"), 1, 5), got.emit)
	got.expect(t)
	w.Delete(state(t, name("a"), 2, 6), got.emit) // some servers send the last state, not the deletion's
	got.expect(t, "Deleted a u2/7 -> u2/6")

	w.Apply(pack(t, `{"kind":"K","metadata":{"name":"b","uid":"u","resourceVersion":"7-x"}}`), func(reflector.Event) {})
	w.Apply(pack(t, `{"kind":"K","metadata":{"name":"b","uid":"u","resourceVersion":"6-x"}}`), got.emit)
	got.expect(t, "Applied b u/7-x -> u/6-x")
}

func TestWriter_ReplaceWithNothingClears(t *testing.T) {
	w := reflector.NewWriter()
	var got recorder
	w.Apply(state(t, name("a"), 1, 1), func(reflector.Event) {})
	w.Replace(nil, "2", got.emit)
	got.expect(t, "Deleted a u1/1 -> -")
	if w.Store().Len() != 0 || w.Store().Bytes() != 0 {
		t.Error("store is not empty")
	}
}

// kube-rs's four key forms: a reference with a namespace and one without never identify the same object.
func TestStore_NamespaceIsPartOfTheRef(t *testing.T) {
	w := reflector.NewWriter()
	namespaced := reflector.ObjectRef{Namespace: "ns", Name: "a"}
	w.Apply(state(t, namespaced, 1, 1), func(reflector.Event) {})
	w.Apply(state(t, name("b"), 2, 1), func(reflector.Event) {})
	s := w.Store()
	if s.Get(namespaced) == nil || s.Get(name("b")) == nil {
		t.Error("object is not found by its own ref")
	}
	if s.Get(name("a")) != nil || s.Get(reflector.ObjectRef{Namespace: "ns", Name: "b"}) != nil {
		t.Error("object is found by a ref of the other scope")
	}
}

// Rule 11: readers see the old content or the new one, never a part. The events come after the change.
func TestStore_ReplaceIsAtomicToReaders(t *testing.T) {
	w := reflector.NewWriter()
	w.Apply(state(t, name("old"), 1, 1), func(reflector.Event) {})
	snapshot := w.Store().List()
	w.Replace([]*reflector.Object{state(t, name("x"), 2, 2), state(t, name("y"), 3, 2)}, "2", func(reflector.Event) {
		if w.Store().Len() != 2 || w.Store().Get(name("old")) != nil {
			t.Error("event before the change was complete")
		}
	})
	if len(snapshot) != 1 || snapshot[0].Ref() != name("old") {
		t.Error("a snapshot changed")
	}
}

// The Writer compared with a plain map on random operations: same content, same bytes; and replaying its events
// rebuilds the content.
func TestWriter_AgreesWithModelOnRandomOperations(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := reflector.NewWriter()
		model := map[reflector.ObjectRef]*reflector.Object{}
		mirror := map[reflector.ObjectRef]*reflector.Object{}
		replay := func(e reflector.Event) {
			if mirror[e.Ref()] != e.Old {
				t.Fatalf("seed %d: %s: Old is not the state before", seed, show(e))
			}
			if e.Type == reflector.Deleted {
				delete(mirror, e.Ref())
			} else {
				mirror[e.Ref()] = e.New
			}
		}
		random := func() *reflector.Object {
			return state(t, name(fmt.Sprint("n", rnd.IntN(20))), rnd.IntN(3), 1+rnd.IntN(6))
		}
		for range 300 {
			switch o := random(); rnd.IntN(10) {
			case 0:
				var list []*reflector.Object
				clear(model)
				for range rnd.IntN(25) {
					o := random()
					list = append(list, o)
					model[o.Ref()] = o
				}
				w.Replace(list, "", replay)
			case 1, 2, 3:
				if m := model[o.Ref()]; m == nil || m.UID() == o.UID() || !before(o, m) {
					delete(model, o.Ref())
				}
				w.Delete(o, replay)
			default:
				if m := model[o.Ref()]; m == nil || !before(o, m) {
					model[o.Ref()] = o
				}
				w.Apply(o, replay)
			}
			if rnd.IntN(20) == 0 { // from here on, the store maintains its order
				scan(w.Store())
			}
			compareStore(t, w.Store(), model, mirror)
		}
	}
}

// before compares resourceVersions of one digit.
func before(a, b *reflector.Object) bool { return a.ResourceVersion() < b.ResourceVersion() }

func compareStore(t *testing.T, s *reflector.Store, model, mirror map[reflector.ObjectRef]*reflector.Object) {
	t.Helper()
	var bytes int64
	for ref, want := range model {
		if got := s.Get(ref); got == nil || !got.Same(want) {
			t.Fatalf("store[%s] = %v, want %s/%s", ref, got, want.UID(), want.ResourceVersion())
		}
		bytes += int64(len(want.Msgpack()))
	}
	if s.Len() != len(model) || s.Bytes() != bytes || len(s.List()) != len(model) {
		t.Fatalf("store has %d objects, %d bytes; want %d, %d", s.Len(), s.Bytes(), len(model), bytes)
	}
	content := map[reflector.ObjectRef]*reflector.Object{}
	for _, o := range s.List() {
		content[o.Ref()] = o
	}
	order := slices.SortedFunc(maps.Keys(model), func(a, b reflector.ObjectRef) int { return strings.Compare(a.Name, b.Name) })
	var scanned []reflector.ObjectRef
	for o := range s.Scan("", reflector.ObjectRef{}) {
		scanned = append(scanned, o.Ref())
	}
	if !slices.Equal(order, scanned) {
		t.Fatalf("scan gives %v, want %v", scanned, order)
	}
	if !maps.Equal(content, mirror) {
		t.Fatalf("replayed events give %d objects, the store has %d", len(mirror), len(content))
	}
}
