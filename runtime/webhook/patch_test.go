// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func object(t *testing.T, js string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := utiljson.Unmarshal([]byte(js), &m); err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return m
}

// patched applies a patch to an object as the API server does.
func patched(t *testing.T, to map[string]any, patch []byte) map[string]any {
	t.Helper()
	js, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	if patch == nil {
		return object(t, string(js))
	}
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	if js, err = ops.Apply(js); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	return object(t, string(js))
}

func TestMakePatch_Table(t *testing.T) {
	for name, c := range map[string]struct{ request, base, object, want string }{
		"equal":               {`{"a":1,"b":[{}]}`, ``, `{"b":[{}],"a":1.0}`, ``},
		"an element in front": {`{"l":[1,2,3]}`, ``, `{"l":[0,1,2,3]}`, `[{"op":"add","path":"/l/0","value":0}]`},
		"an element less":     {`{"l":[1,2,3]}`, ``, `{"l":[1,3]}`, `[{"op":"remove","path":"/l/1"}]`},
		"escapes and null":    {`{"a/b":{"c~":1}}`, ``, `{"a/b":{"c~":null}}`, `[{"op":"replace","path":"/a~1b/c~0","value":null}]`},
		"identity": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u"}}`, ``,
			`{"apiVersion":"v2","kind":"Job","metadata":{"name":"b","namespace":"c","managedFields":[1]},"s":1}`, `[{"op":"add","path":"/s","value":1}]`,
		},
		"no metadata":               {`{"metadata":{"name":"a"}}`, ``, `{"metadata":null}`, ``},
		"a round trip only":         {`{"s":{"known":1,"unknown":2}}`, `{"s":{"known":1,"zero":null},"status":{}}`, `{"s":{"known":1,"zero":null},"status":{}}`, ``},
		"unknown fields remain":     {`{"s":{"known":1,"unknown":2}}`, `{"s":{"known":1}}`, `{"s":{"known":3}}`, `[{"op":"replace","path":"/s/known","value":3}]`},
		"zero values do not appear": {`{}`, `{"s":{"zero":0,"x":0}}`, `{"s":{"zero":0,"x":1}}`, `[{"op":"add","path":"/s","value":{"x":1}}]`},
		"a field is deleted":        {`{"s":{"a":1,"unknown":2}}`, `{"s":{"a":1}}`, `{"s":{}}`, `[{"op":"remove","path":"/s/a"}]`},
		"an element is inserted": {
			`{"l":[{"name":"a","unknown":1},{"name":"b","unknown":2}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"x"},{"name":"a"},{"name":"b","new":1}]}`,
			`[{"op":"replace","path":"/l/0/name","value":"x"},{"op":"remove","path":"/l/0/unknown"},{"op":"replace","path":"/l/1/name","value":"a"},` +
				`{"op":"replace","path":"/l/1/unknown","value":1},{"op":"add","path":"/l/2","value":{"name":"b","new":1,"unknown":2}}]`,
		},
		"elements change places": {
			`{"l":[{"u":1,"n":1},{"u":2,"n":2}]}`, `{"l":[{"n":1},{"n":2}]}`, `{"l":[{"n":2},{"n":1}]}`,
			`[{"op":"replace","path":"/l/0/n","value":2},{"op":"replace","path":"/l/0/u","value":2},{"op":"replace","path":"/l/1/n","value":1},{"op":"replace","path":"/l/1/u","value":1}]`,
		},
		"an element is replaced": {`{"l":[{"name":"a","unknown":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"b"}]}`, `[{"op":"replace","path":"/l/0/name","value":"b"},{"op":"remove","path":"/l/0/unknown"}]`},
		"an element changes":     {`{"l":[{"u":1,"n":1}]}`, `{"l":[{"n":1}]}`, `{"l":[{"n":2}]}`, `[{"op":"replace","path":"/l/0/n","value":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			request := object(t, c.request)
			var base map[string]any
			if c.base != "" {
				base = object(t, c.base)
			}
			patch, err := makePatch(request, base, object(t, c.object))
			if err != nil {
				t.Fatal(err)
			}
			if string(patch) != c.want {
				t.Errorf("%s, want %s", patch, c.want)
			}
		})
	}
}

// TestMakePatch_GivesTheObject: for random objects, the API server's implementation of patches gives the guest's object, with the identity
// of the request's object. The patch does not change its input.
func TestMakePatch_GivesTheObject(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 3000 {
		request, _ := randomValue(rnd, 4).(map[string]any)
		if request == nil {
			continue
		}
		request["metadata"] = map[string]any{"name": "a", "managedFields": []any{}}
		want := mutated(rnd, request).(map[string]any)
		before := fmt.Sprint(request, want)
		seen := k8sruntime.DeepCopyJSON(request)
		delete(seen["metadata"].(map[string]any), "managedFields")
		patch, err := makePatch(seen, nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if after := fmt.Sprint(request, want); after != before {
			t.Fatalf("the input changes: %s, was %s", after, before)
		}
		want = k8sruntime.DeepCopyJSON(want)
		if _, ok := want["metadata"].(map[string]any); !ok {
			want["metadata"] = map[string]any{}
		}
		maps.Copy(want["metadata"].(map[string]any), request["metadata"].(map[string]any))
		if got := patched(t, request, patch); !equal(got, want) {
			t.Fatalf("%v\npatch %s\ngives %v\nwant  %v", request, patch, got, want)
		}
	}
}

// TestMakePatch_UnknownFieldsRemain: a guest that knows half of the fields, and leaves out zero values, changes what it intends to and
// nothing else.
func TestMakePatch_UnknownFieldsRemain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	for range 3000 {
		request, _ := randomValue(rnd, 4).(map[string]any)
		if request == nil {
			continue
		}
		base := known(request).(map[string]any)
		changed := k8sruntime.DeepCopyJSON(base)
		key := []string{"a", "b", "c", "new"}[rnd.IntN(4)]
		changed[key] = "changed"
		want := k8sruntime.DeepCopyJSON(request)
		want[key] = "changed"
		patch, err := makePatch(request, base, changed)
		if err != nil {
			t.Fatal(err)
		}
		if got := patched(t, request, patch); !equal(got, want) {
			t.Fatalf("%v\nbase %v\npatch %s\ngives %v\nwant  %v", request, base, patch, got, want)
		}
	}
}

// TestMakePatch_IsBounded: an object that differs in many places gives few operations, or an error.
func TestMakePatch_IsBounded(t *testing.T) {
	many := func(n int, v any) map[string]any {
		m := map[string]any{}
		for i := range n {
			m[fmt.Sprint(i)] = v
		}
		return m
	}
	request := map[string]any{"metadata": map[string]any{"labels": many(20_000, "a")}, "spec": many(20_000, "a"), "list": make([]any, 20_000), "one": int64(1)}
	object := map[string]any{"metadata": map[string]any{"labels": many(20_000, "b")}, "spec": many(20_000, "b"), "list": make([]any, 10)}
	patch, err := makePatch(request, nil, object)
	var ops []operation
	if err == nil {
		err = json.Unmarshal(patch, &ops)
	}
	var paths []string
	for _, o := range ops {
		paths = append(paths, o.Op+o.Path)
	}
	if want := []string{"replace/list", "replace/metadata/labels", "remove/one", "replace/spec"}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("%v, %v, want %v", paths, err, want)
	}
	if _, err := makePatch(many(20_000, "a"), nil, many(20_000, "b")); err == nil {
		t.Error("an object with 20,000 different fields is patched")
	}
}

// known returns v without the fields u and z, and without empty values, as types with omitempty would give it.
func known(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, e := range v {
			if e = known(e); key != "u" && key != "z" && !slices.ContainsFunc([]any{nil, "", int64(0), false}, func(zero any) bool { return equal(zero, e) }) {
				m[key] = e
			}
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = known(e)
		}
		return list
	}
	return v
}

// mutated returns a copy of v with random changes.
func mutated(rnd *rand.Rand, v any) any {
	if rnd.IntN(12) == 0 {
		if changed := randomValue(rnd, 2); changed != nil {
			if _, ok := v.(map[string]any); !ok {
				return changed
			}
		}
	}
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, e := range v {
			if rnd.IntN(10) > 0 {
				m[key] = mutated(rnd, e)
			}
		}
		if rnd.IntN(4) == 0 {
			m[randomKey(rnd)] = randomValue(rnd, 2)
		}
		return m
	case []any:
		var list []any
		for _, e := range v {
			if rnd.IntN(10) > 0 {
				list = append(list, mutated(rnd, e))
			}
			if rnd.IntN(10) == 0 {
				list = append(list, randomValue(rnd, 1))
			}
		}
		if len(list) > 1 && rnd.IntN(4) == 0 {
			list[0], list[1] = list[1], list[0]
		}
		return append([]any{}, list...)
	}
	return v
}

func randomKey(rnd *rand.Rand) string {
	return []string{"a", "b", "c", "u", "z", "name", "", "/", "~1", "-", "0", "é"}[rnd.IntN(12)]
}

func randomValue(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(10); {
	case n < 4 && depth > 0:
		m := map[string]any{}
		for range rnd.IntN(6) {
			m[randomKey(rnd)] = randomValue(rnd, depth-1)
		}
		return m
	case n < 6 && depth > 0:
		list := []any{}
		for range rnd.IntN(6) {
			list = append(list, randomValue(rnd, depth-1))
		}
		return list
	case n == 6:
		return int64(rnd.IntN(4))
	case n == 7:
		return []any{nil, true, false, 0.5}[rnd.IntN(4)]
	}
	return []string{"", "x", "y"}[rnd.IntN(3)]
}
