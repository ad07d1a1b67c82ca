// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// object reads YAML as the API server's JSON is read.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	js, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := utiljson.Unmarshal(js, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// all returns the fields of a walk.
func all(f Fields) []Path { return f.Collect(1 << 30) }

func texts(paths []Path) string {
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = p.String()
	}
	return strings.Join(list, " ")
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"": "is empty", ".a": "want a name", "a..b": "want a name", "a.": "want a name", "a[": "want a name", "a[b": "want ] or =", "a[b=": "want a name",
		"a[b=c": "closing bracket is missing", "a[b=c,": "want a name", "a[b=c,b=d]": "b= appears twice", "a]": "want . or [", "a b": "want . or [",
		`a["b]`: "not a quoted string", "a[*": "want a name", strings.Repeat("a.", 200) + "a": "more than 128 steps",
	} {
		p, err := Parse(text)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want ...%s...", text, p, err, want)
		}
	}
}

func TestParse_ReadsWhatStringWrites(t *testing.T) {
	for _, text := range []string{
		"spec.replicas", `metadata.annotations["example.com/owner"]`, "spec.containers[name=app].image", "a[*].b", `a[b="c d",e=1]`, `[""].x`, `a["*"]`,
	} {
		p, err := Parse(text)
		if err != nil || p.String() != text {
			t.Errorf("%q: %q, %v", text, p.String(), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"spec.replicas", `a["b.c"].d[x=y,"z"=1][*]`, "a[", "\"", `a["\u00e9"]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || cmp.Diff(p, again, cmp.AllowUnexported(step{})) != "" {
			t.Fatalf("%q is written as %q, which reads as %v, %v", text, p.String(), again, err)
		}
	})
}

func TestTouched_NamesTheLeaves(t *testing.T) {
	o := object(t, `
spec:
  replicas: 3
  empty: {}
  none: []
  args: [a, b]
  containers:
  - {name: app, image: x, ports: [{containerPort: 80}]}
  twice: [{name: a}, {name: a}]
metadata: {annotations: {example.com/owner: me}}
`)
	want := `metadata.annotations["example.com/owner"] spec.args spec.containers[name=app].image spec.containers[name=app].name ` +
		`spec.containers[name=app].ports[containerPort=80].containerPort spec.empty spec.none spec.replicas spec.twice`
	if got := texts(all(Touched(o))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := texts(all(Merged(o))); !strings.Contains(got, " spec.containers ") {
		t.Errorf("a merge patch replaces lists: %s", got)
	}
}

func TestChanged_NamesWhatDiffers(t *testing.T) {
	const before = `{a: 1, b: {c: x, gone: y}, l: [{name: p, v: 1}, {name: q, v: 1}], s: [1, 2], z: null, e: {}}`
	for after, want := range map[string]string{
		before: "",
		`{a: 1.0, b: {c: x, gone: y}, l: [{name: p, v: 1}, {name: q, v: 1}], s: [1, 2], e: {}}`:                     "",
		`{a: 2, b: {c: x}, l: [{name: p, v: 1}, {name: q, v: 1}], s: [1, 2], e: {}}`:                                "a b.gone",
		`{a: 1, l: [{name: p, v: 2}, {name: q, v: 1}, {name: r, v: 1}], s: [1, 3], e: {}}`:                          "b.c b.gone l[name=p].v l[name=r].name l[name=r].v s",
		`{a: 1, b: {c: x, gone: y}, l: [{name: q, v: 1}, {name: p, v: 1}], s: [1, 2], e: {}}`:                       "l",
		`{a: 1, b: {c: x, gone: y}, l: [{name: q, v: 1}], s: [1, 2], e: {}}`:                                        "l[name=p]",
		`{a: 1, b: {c: x, gone: y}, s: [1, 2]}`:                                                                     "e l[name=p] l[name=q]",
		`{a: {x: 1}, b: 5, l: {name: p}, s: [1, 2], e: {f: 1}, new: {deep: {er: 1}}}`:                               "a b e.f l new.deep.er",
		`{a: 1, b: {c: x, gone: y}, l: [{name: p, v: 1}, {name: q, v: 1}, {v: 5}], s: [1, 2], e: {}, m: [], z: {}}`: "l m z",
	} {
		if got := texts(all(Changed(object(t, before), object(t, after)))); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", after, got, want)
		}
	}
}

func TestCovers_WhatAPatternNamesAndBelow(t *testing.T) {
	set, err := ParseSet([]string{"metadata.labels", "spec.containers[name=app].image", "spec.ports[*]", `data["a.b"]`, "x.*"})
	if err == nil {
		t.Error("x.* was read")
	}
	for text, want := range map[string]string{
		`{metadata: {labels: {a: b}}}`:                          "",
		`{metadata: {labels: {}}}`:                              "",
		`{metadata: {}}`:                                        "metadata",
		`{metadata: {annotations: {a: b}}}`:                     "metadata.annotations.a",
		`{spec: {containers: [{name: app, image: x}]}}`:         "",
		`{spec: {containers: [{name: app, image: {deep: x}}]}}`: "",
		`{spec: {containers: [{name: app, args: [x]}]}}`:        "spec.containers[name=app].args",
		`{spec: {containers: [{name: other, image: x}]}}`:       "spec.containers[name=other].image spec.containers[name=other].name",
		`{spec: {containers: [{image: x}]}}`:                    "spec.containers",
		`{spec: {containers: {name: app, image: x}}}`:           "spec.containers.image spec.containers.name",
		`{spec: {ports: [{name: a, port: 1}], ports2: 1}}`:      "spec.ports2",
		`{spec: {ports: {a: 1}}}`:                               "",
		`{spec: {ports: []}}`:                                   "spec.ports",
		`{data: {a.b: x, a: {b: x}}}`:                           "data.a.b",
		`{spec: 1}`:                                             "spec",
	} {
		missing, _ := set.Missing(Touched(object(t, text)), 100)
		if got := texts(missing); got != want {
			t.Errorf("%s: missing %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		`{metadata: {labels: {a: b}}}`: false, `{spec: {containers: [{name: app, image: x}]}}`: true, `{spec: {ports: {a: 1}}}`: false,
	} {
		if _, byItem := set.Missing(Touched(object(t, text)), 100); byItem != want {
			t.Errorf("%s: by item %v, want %v", text, byItem, want)
		}
	}
}

// randomObject returns a small object of few different words.
func randomObject(r *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for range r.IntN(4) {
		key := []string{"a", "b", "c"}[r.IntN(3)]
		switch k := r.IntN(4); {
		case k == 0 && depth > 0:
			o[key] = randomObject(r, depth-1)
		case k == 1 && depth > 0:
			var list []any
			for _, name := range []string{"x", "y"}[:r.IntN(3)] {
				item := randomObject(r, depth-1)
				item["name"] = name
				list = append(list, item)
			}
			o[key] = list
		default:
			o[key] = int64(r.IntN(2))
		}
	}
	return o
}

func randomPattern(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.IntN(3) {
		switch k := r.IntN(5); {
		case k == 0 && i > 0:
			b.WriteString("[*]")
		case k == 1 && i > 0:
			b.WriteString([]string{"[name=x]", "[name=y]"}[r.IntN(2)])
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString([]string{"a", "b", "c"}[r.IntN(3)])
		}
	}
	return b.String()
}

func copyOf(t testing.TB, o map[string]any) map[string]any {
	js, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(js))
}

// TestChanged_PutsOneStateOverTheOther: for random objects, two states are equal exactly if no
// field is returned, and without the returned fields both are equal.
func TestChanged_PutsOneStateOverTheOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		before, after := randomObject(r, 3), randomObject(r, 3)
		paths := all(Changed(before, after))
		if (len(paths) == 0) != equal(before, after) {
			t.Fatalf("%v and %v: changed %s", before, after, texts(paths))
		}
		b, a := copyOf(t, before), copyOf(t, after)
		for _, p := range paths {
			cut(b, p)
			cut(a, p)
		}
		if b, a := bare(b), bare(a); !equal(b, a) {
			t.Fatalf("%v and %v: beside %s also %s", before, after, texts(paths), cmp.Diff(b, a))
		}
	}
}

// cut takes out a field.
func cut(v any, p Path) {
	for i, s := range p {
		if s.item != nil {
			list, _ := v.([]any)
			at := slices.IndexFunc(list, func(x any) bool { return x.(map[string]any)["name"] == s.item["name"] })
			if at < 0 {
				return
			}
			if i == len(p)-1 {
				clear(list[at].(map[string]any))
			}
			v = list[at]
			continue
		}
		m, _ := v.(map[string]any)
		if i == len(p)-1 {
			delete(m, s.key)
		}
		v = m[s.key]
	}
}

// bare is a value without maps and lists that have nothing in them.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, value := range v {
			if b := bare(value); b != nil {
				m[key] = b
			}
		}
		if len(m) == 0 {
			return nil
		}
		return m
	case []any:
		var list []any
		for _, value := range v {
			if b := bare(value); b != nil {
				list = append(list, b)
			}
		}
		if len(list) == 0 {
			return nil
		}
		return list
	}
	return v
}

// TestIntersect_IsWhatBothCover on random patterns and objects.
func TestIntersect_IsWhatBothCover(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	met := 0
	for range 5000 {
		lists := [2][]string{}
		var sets [2]*Set
		for i := range lists {
			for range 1 + r.IntN(3) {
				lists[i] = append(lists[i], randomPattern(r))
			}
			sets[i], _ = ParseSet(lists[i])
		}
		texts, ok := IntersectAll(lists[0], lists[1])
		both, err := ParseSet(texts)
		if err != nil || ok != (len(texts) > 0) {
			t.Fatal(texts, ok, err)
		}
		for _, p := range all(Touched(randomObject(r, 3))) {
			if p[len(p)-1].key == "name" {
				continue // what an item is known by is covered by more than itself
			}
			a, _ := sets[0].Covers(p)
			b, _ := sets[1].Covers(p)
			if got, _ := both.Covers(p); got != (a && b) {
				t.Fatalf("%v and %v: %v of %s: %v and %v, but both %v", lists[0], lists[1], texts, p, a, b, got)
			}
			if a && b {
				met++
			}
		}
	}
	if met < 100 {
		t.Errorf("only %d fields were covered by both", met)
	}
}

func FuzzMissing(f *testing.F) {
	f.Add(`{"a":[{"name":"x","b":1}]}`, `{"a":[]}`, "a[name=x].b")
	f.Add(`{"a":{"b":null}}`, `{"a":[1,{}]}`, `["a"][*]`)
	f.Fuzz(func(t *testing.T, before, after, pattern string) {
		var b, a map[string]any
		if utiljson.Unmarshal([]byte(before), &b) != nil || utiljson.Unmarshal([]byte(after), &a) != nil {
			return
		}
		set, _ := ParseSet([]string{pattern})
		for _, paths := range []Fields{Touched(a), Merged(a), Changed(b, a)} {
			missing, _ := set.Missing(paths, 100)
			for _, p := range missing {
				if _, err := Parse(p.String()); err != nil && len(p) <= maxSteps {
					t.Fatalf("%q is not a pattern: %v", p.String(), err)
				}
			}
		}
		if len(all(Changed(b, a))) > 0 && equal(b, a) {
			t.Fatal("equal objects have changes")
		}
	})
}
