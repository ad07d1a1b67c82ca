// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// meta is the metadata of a test object; pack adds the required fields.
type meta map[string]any

func pack(t testing.TB, fields ...meta) *reflector.Object {
	t.Helper()
	m := map[string]any{"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": int64(1)}
	for _, f := range fields {
		maps.Copy(m, f)
	}
	o, err := reflector.Pack(map[string]any{"metadata": m}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func filter(t testing.TB, elements ...string) *predicate.Filter {
	t.Helper()
	return filterWith(t, predicate.Options{}, elements...)
}

func filterWith(t testing.TB, opts predicate.Options, elements ...string) *predicate.Filter {
	t.Helper()
	f, err := predicate.Parse(elements, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func changed(old, now *reflector.Object) reflector.Event {
	return reflector.Event{Type: reflector.Applied, Old: old, New: now}
}

// Rule 23: equal values are hidden. Each predicate uses only its own field.
func TestFilter_EachPredicateSeesItsField(t *testing.T) {
	base := pack(t, meta{"labels": map[string]any{"l": "1"}, "annotations": map[string]any{"a": "1"}, "finalizers": []any{"f"}})
	same := meta{"labels": map[string]any{"l": "1"}, "annotations": map[string]any{"a": "1"}, "finalizers": []any{"f"}}
	states := map[string]*reflector.Object{
		"generation":      pack(t, same, meta{"generation": int64(2)}),
		"resourceVersion": pack(t, same, meta{"resourceVersion": "2"}),
		"labels":          pack(t, same, meta{"labels": map[string]any{"l": "2"}}),
		"annotations":     pack(t, same, meta{"annotations": map[string]any{"a": "2"}}),
		"finalizers":      pack(t, same, meta{"finalizers": []any{"f", "g"}}),
		"deletion":        pack(t, same, meta{"deletionTimestamp": "2026-01-01T00:00:00Z"}),
	}
	for word := range states {
		for what, now := range states {
			want := predicate.Hide
			if what == word {
				want = predicate.Pass
			}
			if got := filter(t, word, "ttl=never").Check(time.Time{}, changed(base, now)); got != want {
				t.Errorf("%s: a change of %s: %s, want %s", word, what, got, want)
			}
		}
	}
}

func TestFilter_SeesEveryChangeOfAMapAndAList(t *testing.T) {
	for _, c := range []struct {
		word     string
		old, now any
		want     predicate.Verdict
	}{
		{"labels", map[string]any{"a": "1", "b": "2"}, map[string]any{"b": "2", "a": "1"}, predicate.Hide},
		{"labels", map[string]any{"a": "1"}, map[string]any{"a": "1", "b": ""}, predicate.Pass},
		{"labels", map[string]any{"a": "1"}, map[string]any{"b": "1"}, predicate.Pass},
		{"labels", map[string]any{}, nil, predicate.Hide},
		{"annotations", map[string]any{"a": "1"}, map[string]any{}, predicate.Pass},
		{"annotations", map[string]any{"a": "bc"}, map[string]any{"ab": "c"}, predicate.Pass},
		{"annotations", map[string]any{"a": "1", "b": "2"}, map[string]any{"b": "2", "a": "1"}, predicate.Hide},
		{"finalizers", []any{"a", "b"}, []any{"ab"}, predicate.Pass},
		{"finalizers", []any{"a", "b"}, []any{"b", "a"}, predicate.Pass},
		{"finalizers", []any{"a"}, []any{"a"}, predicate.Hide},
	} {
		ev := changed(pack(t, meta{c.word: c.old}), pack(t, meta{c.word: c.now}))
		if got := filter(t, c.word).Check(time.Time{}, ev); got == predicate.Hide && c.want == predicate.Pass {
			t.Errorf("%s: %v to %v: %s, want %s", c.word, c.old, c.now, got, c.want)
		}
		if got := filter(t, c.word, "ttl=never").Check(time.Time{}, ev); got != c.want {
			t.Errorf("%s: %v to %v: %s, want %s", c.word, c.old, c.now, got, c.want)
		}
	}
}

// Rule 23: a new uid passes, and so does an event without an old or a new object.
func TestFilter_OnlyChangesAreHidden(t *testing.T) {
	a := pack(t)
	f := filter(t, "all(generation, labels, deletion)", "ttl=never")
	for what, ev := range map[string]reflector.Event{
		"listed":                        {Type: reflector.Listed, New: a},
		"relisted, unknown before":      {Type: reflector.Relisted, New: a},
		"created":                       {Type: reflector.Applied, New: a},
		"deleted":                       {Type: reflector.Deleted, Old: a, New: a},
		"deleted unseen":                {Type: reflector.Deleted, Old: a},
		"recreated with the same value": {Type: reflector.Applied, Old: a, New: pack(t, meta{"uid": "other"})},
	} {
		if got := f.Check(time.Time{}, ev); got != predicate.Pass {
			t.Errorf("%s: %s, want pass", what, got)
		}
	}
	if got := f.Check(time.Time{}, reflector.Event{Type: reflector.Relisted, Old: a, New: a}); got != predicate.Hide {
		t.Errorf("relisted with equal values: %s, want hide", got)
	}
}

// Rule 23: a missing field cannot hide an object: kube-rs's None passes.
func TestFilter_KindWithoutTheFieldPasses(t *testing.T) {
	bare := pack(t, meta{"generation": nil, "resourceVersion": ""})
	for _, word := range []string{"generation", "resourceVersion"} {
		if got := filter(t, word, "ttl=never").Check(time.Time{}, changed(bare, bare)); got != predicate.Pass {
			t.Errorf("%s: %s, want pass", word, got)
		}
	}
}

func TestFilter_AnyOfAndAllOf(t *testing.T) {
	old := pack(t)
	generation := changed(old, pack(t, meta{"generation": int64(2)}))
	both := changed(old, pack(t, meta{"generation": int64(2), "labels": map[string]any{"a": "b"}}))
	neither := changed(old, pack(t, meta{"resourceVersion": "2"}))
	pass, hide, ask := predicate.Pass, predicate.Hide, predicate.Ask
	for _, c := range []struct {
		elements                  []string
		generation, both, neither predicate.Verdict
	}{
		{[]string{"generation", "labels"}, pass, pass, hide},
		{[]string{"any(generation, labels)"}, pass, pass, hide},
		{[]string{"all(generation, labels)"}, hide, pass, hide},
		{[]string{"all(any(generation, deletion), labels)"}, hide, pass, hide},
		{[]string{"deletion", "all(generation, labels)"}, hide, pass, hide},
		{[]string{"func"}, ask, ask, ask},
		{[]string{"labels", "func"}, ask, pass, ask},
		{[]string{"all(labels, func)"}, hide, ask, hide},
		{[]string{"all(func, labels)"}, hide, ask, hide},
		{[]string{"generation", "all(labels, func)"}, pass, pass, hide},
	} {
		f := filter(t, append(c.elements, "ttl=never")...)
		got := []predicate.Verdict{f.Check(time.Time{}, generation), f.Check(time.Time{}, both), f.Check(time.Time{}, neither)}
		if diff := cmp.Diff([]predicate.Verdict{c.generation, c.both, c.neither}, got); diff != "" {
			t.Errorf("%v: %s", c.elements, diff)
		}
	}
}

// The guest is called for an object that is created or deleted if only its filter could let it pass.
func TestFilter_GuestIsAskedAboutWhatComesAndGoes(t *testing.T) {
	a := pack(t)
	for element, want := range map[string]predicate.Verdict{"func": predicate.Ask, "all(labels, func)": predicate.Ask, "any(labels, func)": predicate.Pass} {
		for _, ev := range []reflector.Event{{Type: reflector.Listed, New: a}, {Type: reflector.Deleted, Old: a}} {
			if got := filter(t, element).Check(time.Time{}, ev); got != want {
				t.Errorf("%s, %s: %s, want %s", element, ev.Type, got, want)
			}
		}
	}
	if filter(t, "labels").Asks() || !filter(t, "labels", "all(labels, func)").Asks() {
		t.Error("Asks is wrong")
	}
}

// Rule 23: with a TTL, an equal value passes once in a while.
func TestFilter_EqualValuePassesAfterTTL(t *testing.T) {
	f := filter(t, "generation", "ttl=1m")
	begin := time.Unix(1000, 0)
	old, now := pack(t), pack(t, meta{"resourceVersion": "2"})
	var got []predicate.Verdict
	got = append(got, f.Check(begin, reflector.Event{Type: reflector.Listed, New: old}))
	for _, at := range []int{1, 59, 60, 61, 119, 120, 500, 501} {
		got = append(got, f.Check(begin.Add(time.Duration(at)*time.Second), changed(old, now)))
	}
	pass, hide := predicate.Pass, predicate.Hide
	if diff := cmp.Diff([]predicate.Verdict{pass, hide, hide, pass, hide, hide, pass, pass, hide}, got); diff != "" {
		t.Error(diff)
	}
}

// A change that passes by its value restarts the time, and a deletion ends it: an object of the same name is a
// different one.
func TestFilter_TTLCountsFromTheLastThatPassed(t *testing.T) {
	f := filter(t, "generation", "ttl=1m")
	begin := time.Unix(1000, 0)
	check := func(seconds int, ev reflector.Event) predicate.Verdict {
		return f.Check(begin.Add(time.Duration(seconds)*time.Second), ev)
	}
	old, now, next := pack(t), pack(t, meta{"resourceVersion": "2"}), pack(t, meta{"generation": int64(2)})
	check(0, reflector.Event{Type: reflector.Listed, New: old})
	check(50, changed(old, next))
	if got := check(70, changed(old, now)); got != predicate.Hide {
		t.Errorf("20 s after one that passed: %s", got)
	}
	check(80, reflector.Event{Type: reflector.Deleted, Old: old})
	if got := check(81, changed(old, now)); got != predicate.Pass {
		t.Errorf("after the deletion: %s", got)
	}
}

// When the TTL expires, the guest's filter decides again about changes that it could have hidden.
func TestFilter_AfterTTLTheGuestIsAsked(t *testing.T) {
	f := filter(t, "all(generation, func)", "ttl=1m")
	old := pack(t)
	f.Check(time.Unix(0, 0), reflector.Event{Type: reflector.Listed, New: old})
	if got := f.Check(time.Unix(1, 0), changed(old, old)); got != predicate.Hide {
		t.Errorf("before: %s", got)
	}
	if got := f.Check(time.Unix(61, 0), changed(old, old)); got != predicate.Ask {
		t.Errorf("after: %s", got)
	}
}

func TestFilter_AnnotationsForTheHostAlwaysPass(t *testing.T) {
	paused := meta{"annotations": map[string]any{"wasmctl.dev/paused": ""}}
	old, now := pack(t), pack(t, paused)
	opts := predicate.Options{Always: []string{"wasmctl.dev/paused"}}
	for _, element := range []string{"generation", "all(generation, func)", "func"} {
		f := filterWith(t, opts, element, "ttl=never")
		if a, b := f.Check(time.Time{}, changed(old, now)), f.Check(time.Time{}, changed(now, old)); a != predicate.Pass || b != predicate.Pass {
			t.Errorf("%s: set: %s, removed: %s", element, a, b)
		}
		if got := f.Check(time.Time{}, changed(now, now)); got == predicate.Pass {
			t.Errorf("%s: unchanged: %s", element, got)
		}
	}
}

func TestFilter_HiddenIsExplained(t *testing.T) {
	var reported []string
	opts := predicate.Options{OnHidden: func(ref reflector.ObjectRef, unchanged predicate.Words) {
		reported = append(reported, ref.String()+": "+unchanged.String())
	}}
	f := filterWith(t, opts, "all(generation, labels)", "deletion", "ttl=never")
	old := pack(t)
	f.Check(time.Time{}, changed(old, pack(t, meta{"generation": int64(2)})))
	f.Check(time.Time{}, changed(old, old))
	f.Check(time.Time{}, changed(old, pack(t, meta{"deletionTimestamp": "2026-01-01T00:00:00Z"})))
	if diff := cmp.Diff([]string{"ns/a: labels, deletion", "ns/a: generation, labels, deletion"}, reported); diff != "" {
		t.Error(diff)
	}
}

func TestFilter_NilHidesNothing(t *testing.T) {
	f := filter(t, "ttl=1m")
	if f != nil || f.Asks() || f.TTL() != 0 || f.String() != "none" || f.Check(time.Time{}, changed(pack(t), pack(t))) != predicate.Pass {
		t.Errorf("got %v", f)
	}
}

// A filter uses bounded memory: deleted objects and objects that have been quiet for the TTL leave nothing behind.
func TestFilter_MemoryIsBounded(t *testing.T) {
	f := filter(t, "generation", "ttl=1m")
	const n = 20_000
	listed := func(round int) (grown int64) {
		before := heap()
		for i := range n {
			o := pack(t, meta{"name": fmt.Sprint("o", i), "uid": fmt.Sprintf("u%d-%d", round, i)})
			f.Check(time.Unix(int64(round)*1000, 0), reflector.Event{Type: reflector.Listed, New: o})
			if round%2 == 1 { // deleted again
				f.Check(time.Unix(int64(round)*1000, 0), reflector.Event{Type: reflector.Deleted, Old: o})
			}
		}
		return int64(heap()) - int64(before)
	}
	if grown := listed(0); grown > 100*n {
		t.Errorf("%d objects cost %d bytes", n, grown)
	} else {
		t.Logf("%d bytes for each object", grown/n)
	}
	for round := range 6 {
		if grown := listed(round + 1); grown > 30*n {
			t.Errorf("round %d: grew by %d bytes", round, grown)
		}
	}
	runtime.KeepAlive(f)
}

func heap() uint64 {
	var st runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&st)
	return st.HeapAlloc
}
