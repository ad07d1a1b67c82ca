// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// schema has each structure that a schema of Kubernetes can have.
const schema = `types:
- name: object
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: metadata}}
    - {name: text, type: {scalar: string}}
    - {name: whole, type: {map: {elementType: {scalar: untyped}, elementRelationship: atomic}}}
    - {name: keyed, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [id, kind]}}}
    - {name: set, type: {list: {elementType: {scalar: untyped}, elementRelationship: associative}}}
    - {name: list, type: {list: {elementType: {scalar: untyped}, elementRelationship: atomic}}}
    - {name: any, type: {namedType: any}}
- name: metadata
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: finalizers, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: item
  map:
    fields:
    - {name: id, type: {scalar: numeric}}
    - {name: kind, type: {scalar: string}, default: TCP}
    - {name: text, type: {scalar: string}}
    - {name: map, type: {map: {elementType: {scalar: untyped}}}}
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: any
  scalar: untyped
  list: {elementType: {namedType: any}, elementRelationship: atomic}
  map: {elementType: {namedType: any}, elementRelationship: separable}
`

var big = []any{int64(1)<<53 + 1, int64(1) << 53}

// randomState returns an object, or a part of it.
func randomState(rnd *rand.Rand) map[string]any {
	some := func(values ...any) any { return values[rnd.IntN(len(values))] }
	o := map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "n"}}
	add := func(to map[string]any, key string, value func() any) {
		if rnd.IntN(2) == 0 {
			to[key] = value()
		}
	}
	list := func(values ...any) func() any {
		return func() any {
			rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
			return slices.Clone(values[:rnd.IntN(len(values)+1)])
		}
	}
	object := func(values ...any) func() any {
		return func() any {
			m := map[string]any{}
			for _, key := range []string{"a", "b"} {
				add(m, key, func() any { return some(values...) })
			}
			return m
		}
	}
	add(o["metadata"].(map[string]any), "labels", object("1", ""))
	add(o["metadata"].(map[string]any), "finalizers", list("x/1", "x/2", "x/3"))
	add(o, "text", func() any { return some("", "a", nil) })
	add(o, "whole", object("1", int64(2), nil, 2.5))
	add(o, "set", list("a", int64(1), true, big[0], big[1]))
	add(o, "list", list("a", int64(1), nil))
	add(o, "any", object("a", nil, []any{}, []any{"b"}, map[string]any{}, map[string]any{"c": nil}, map[string]any{"c": int64(1), "d": false}))
	add(o, "keyed", func() any {
		var items []any
		for _, id := range list(int64(1), int64(2), big[0], big[1])().([]any) {
			for _, kind := range list("TCP", "UDP")().([]any) {
				item := map[string]any{"id": id, "kind": kind}
				if kind == "TCP" && rnd.IntN(2) == 0 {
					delete(item, "kind")
				}
				add(item, "text", func() any { return some("", "a") })
				add(item, "map", object("1", nil))
				add(item, "set", list("p", "q"))
				items = append(items, item)
			}
		}
		rnd.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		return items
	})
	for _, key := range []string{"whole", "set", "list", "any", "keyed"} {
		if rnd.IntN(12) == 0 {
			o[key] = nil
		}
	}
	return o
}

// change returns an object with some of the fields of another.
func change(rnd *rand.Rand, o, other map[string]any) map[string]any {
	o = maps.Clone(o)
	for _, key := range slices.Sorted(maps.Keys(other)) {
		if rnd.IntN(4) == 0 {
			o[key] = other[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if _, ok := other[key]; !ok && rnd.IntN(4) == 0 {
			delete(o, key)
		}
	}
	return o
}

// decoded returns a copy in the types of decoded JSON.
func decoded(t *testing.T, o any) map[string]any {
	t.Helper()
	js, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := utiljson.Unmarshal(js, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

type noConversion struct{}

func (noConversion) Convert(o *typed.TypedValue, _ smd.APIVersion) (*typed.TypedValue, error) {
	return o, nil
}
func (noConversion) IsMissingVersionError(error) bool { return false }

// TestUnchanged_AnApplyChangesNothing: neither the object nor its managers, for any schema.
func TestUnchanged_AnApplyChangesNothing(t *testing.T) {
	parser, err := typed.NewParser(schema)
	if err != nil {
		t.Fatal(err)
	}
	updater := (&merge.UpdaterBuilder{Converter: noConversion{}, IgnoreFilter: map[smd.APIVersion]smd.Filter{
		"v1": smd.NewExcludeSetFilter(smd.NewSet(smd.MakePathOrDie("apiVersion"), smd.MakePathOrDie("kind"), smd.MakePathOrDie("metadata", "name"))),
	}}).BuildUpdater()
	state := func(o map[string]any) *typed.TypedValue {
		v, err := parser.Type("object").FromUnstructured(decoded(t, o), typed.AllowDuplicates)
		if err != nil {
			t.Fatal(err, o)
		}
		return v
	}
	text := func(live *typed.TypedValue, managers smd.ManagedFields) string {
		s := fmt.Sprint(decoded(t, live.AsValue().Unstructured()))
		for _, m := range slices.Sorted(maps.Keys(managers)) {
			js, err := managers[m].Set().ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			s += "\n" + m + string(js)
		}
		return s
	}
	proved, last, missed := 0, 0, 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		live, managers := state(map[string]any{}), smd.ManagedFields{}
		ours := randomState(rnd)
		for range 6 {
			before, now := live, managers
			mine := false
			switch rnd.IntN(4) {
			case 0, 1:
				if mine = true; rnd.IntN(2) == 0 {
					ours = change(rnd, ours, randomState(rnd))
				}
				live, managers, err = updater.Apply(live, state(ours), "v1", managers.Copy(), "ours", true)
			case 2:
				live, managers, err = updater.Apply(live, state(randomState(rnd)), "v1", managers.Copy(), "theirs", true)
			case 3:
				o := change(rnd, live.AsValue().Unstructured().(map[string]any), randomState(rnd))
				live, managers, err = updater.Update(live, state(o), "v1", managers.Copy(), "others")
			}
			if err != nil {
				t.Fatal(seed, err)
			}
			if live == nil { // a no-op
				live = before
			}
			if managers == nil {
				managers = now
			}
			set, ok := managers["ours"]
			if !ok {
				continue
			}
			js, err := set.Set().ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			var fields map[string]any
			if err := utiljson.Unmarshal(js, &fields); err != nil {
				t.Fatal(err)
			}
			object := decoded(t, live.AsValue().Unstructured())
			if mine {
				last++
				if !Unchanged(fields, decoded(t, ours), object) {
					missed++
				}
			}
			for _, sent := range []map[string]any{ours, change(rnd, ours, randomState(rnd)), randomState(rnd)} {
				if !Unchanged(fields, decoded(t, sent), object) {
					continue
				}
				proved++
				after, managed, err := updater.Apply(live, state(sent), "v1", managers.Copy(), "ours", false)
				if err != nil {
					t.Fatalf("seed %d: %v: %v\n%s", seed, err, sent, text(live, managers))
				}
				if after == nil {
					after = live
				}
				for p := range managed["ours"].Set().Difference(set.Set()).All() {
					within := false // a value that the manager owned while it was empty, and that others have filled: see Unchanged
					for i := range p {
						within = within || set.Set().Has(p[:i])
					}
					if !within {
						t.Fatalf("seed %d: an apply would own %v: %v\n%s", seed, p, sent, text(live, managers))
					}
				}
				managed["ours"] = set
				if text(after, managed) != text(live, managers) {
					t.Fatalf("seed %d: an apply would change something: %v\n%s\n%s", seed, sent, text(live, managers), text(after, managed))
				}
			}
		}
	}
	if proved < 300 || missed > last/2 {
		t.Errorf("%d were proved; of %d applies %d were not", proved, last, missed)
	}
}

func TestUnchanged_ValuesThatTheAPIServerOmits(t *testing.T) {
	object := func(spec, meta string) map[string]any {
		return decoded(t, json.RawMessage(`{"apiVersion":"v1","kind":"K","metadata":{"name":"n","uid":"u"`+meta+`},"spec":{"a":1`+spec+`}}`))
	}
	for _, c := range []struct {
		field, sent, meta string
		want              bool
	}{
		{"", ``, `,"creationTimestamp":null`, true}, // as Go encodes its types
		{"", ``, `,"resourceVersion":"7"`, true},
		{"", ``, `,"resourceVersion":"6"`, false},
		{`,"f:b":{}`, `,"b":null`, ``, true},
		{`,"f:b":{}`, `,"b":[]`, ``, true},
		{`,"f:b":{}`, `,"b":0`, ``, false}, // if null was applied before, a pointer becomes 0
		{`,"f:labels":{}`, `,"labels":{}`, ``, true},
		{`,"f:selector":{}`, `,"selector":{}`, ``, false}, // if null was applied before, it selects everything
	} {
		fields := decoded(t, json.RawMessage(`{"f:spec":{"f:a":{}`+c.field+`}}`))
		if got := Unchanged(fields, object(c.sent, c.meta), object("", `,"resourceVersion":"7"`)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
