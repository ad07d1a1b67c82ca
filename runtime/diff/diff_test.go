// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

func packOf(t testing.TB, v any) []byte {
	t.Helper()
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPacked_NamesWhatDiffers(t *testing.T) {
	before := map[string]any{
		"kind": "App",
		"metadata": map[string]any{
			"name": "web", "resourceVersion": "1", "managedFields": []any{"x"},
			"labels": map[string]any{"app.kubernetes.io/name": "web", "tier": "front"},
		},
		"spec": map[string]any{"replicas": int64(1), "containers": []any{map[string]any{"name": "app", "image": "a:1"}}, "args": []any{"x"}, "off": true},
	}
	after := map[string]any{
		"kind": "App",
		"metadata": map[string]any{
			"name": "web", "resourceVersion": "2",
			"labels": map[string]any{"app.kubernetes.io/name": "shop", "tier": "front"},
		},
		"spec":   map[string]any{"replicas": int64(3), "containers": []any{map[string]any{"name": "side", "image": "b"}, map[string]any{"name": "app", "image": "a:2"}}, "args": []any{"y"}},
		"status": map[string]any{"text": strings.Repeat("é", MaxValue)},
	}
	got, err := Packed(packOf(t, before), packOf(t, after), Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	long := text.Clip(`"`+strings.Repeat("é", MaxValue), MaxValue)
	want := []Change{
		{"metadata.labels[app.kubernetes.io/name]", `"web"`, `"shop"`},
		{"spec.args[0]", `"x"`, `"y"`},
		{"spec.containers[name=side]", "", `{"image":"b","name":"side"}`},
		{"spec.containers[name=app].image", `"a:1"`, `"a:2"`},
		{"spec.off", "true", ""},
		{"spec.replicas", "1", "3"},
		{"status.text", "", long},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := Packed(nil, packOf(t, map[string]any{"a": "b"}), Bounds{}); err != nil || len(got) != 1 || got[0] != (Change{"a", "", `"b"`}) {
		t.Errorf("from nothing: %v, %v", got, err)
	}
}

// TestPacked_ListsByNameUIDOrType: an insertion or a reordering is not reported as a change of all following elements.
func TestPacked_ListsByNameUIDOrType(t *testing.T) {
	list := func(field string, ids ...string) map[string]any {
		var l []any
		for _, id := range ids {
			l = append(l, map[string]any{field: id, "value": "of " + id})
		}
		return map[string]any{"l": l}
	}
	for _, c := range []struct {
		before, after map[string]any
		want          []Change
	}{
		{list("name", "a", "b"), list("name", "new", "a", "b"), []Change{{"l[name=new]", "", `{"name":"new","value":"of new"}`}}},
		{list("uid", "a", "b"), list("uid", "b"), []Change{{"l[uid=a]", `{"uid":"a","value":"of a"}`, ""}}},
		{list("type", "Ready", "Up"), list("type", "Up", "Ready"), []Change{{"l[order]", `["Ready","Up"]`, `["Up","Ready"]`}}},
		{list("type", "x.y/Z"), list("type"), []Change{{`l[type="x.y/Z"]`, `{"type":"x.y/Z","value":"of x.y/Z"}`, ""}}},
		{list("name", "a", "a"), list("name", "b", "a"), []Change{{"l[0].name", `"a"`, `"b"`}, {"l[0].value", `"of a"`, `"of b"`}}},
		{list("key", "a"), list("key", "b", "a"), []Change{{"l[0].key", `"a"`, `"b"`}, {"l[0].value", `"of a"`, `"of b"`}, {"l[1]", "", `{"key":"a","value":"of a"}`}}},
	} {
		got, err := Packed(packOf(t, c.before), packOf(t, c.after), Bounds{})
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%v to %v: %v (-want +got):\n%s", c.before, c.after, err, diff)
		}
	}
}

func TestPacked_IsBounded(t *testing.T) {
	many := map[string]any{}
	for i := range 1000 {
		many[fmt.Sprint(i)] = int64(i)
	}
	got, err := Packed(nil, packOf(t, many), Bounds{})
	if err != nil || len(got) != MaxChanges+1 || got[MaxChanges].Path != More {
		t.Errorf("%d changes, %v", len(got), err)
	}
}

// model is the expected result of Packed, from decoded values.
func model(path string, before, after any, out map[string][2]string) {
	b, bIs := before.(map[string]any)
	a, aIs := after.(map[string]any)
	if bIs && aIs {
		for _, key := range slices.Sorted(maps.Keys(a)) {
			modelAt(path+"."+key, b[key], a[key], out)
		}
		for key := range b {
			if _, there := a[key]; !there {
				modelAt(path+"."+key, b[key], nil, out)
			}
		}
		return
	}
	bs, bIs := before.([]any)
	as, aIs := after.([]any)
	if !bIs || !aIs {
		modelAt(path, before, after, out)
		return
	}
	for _, field := range []string{"name", "uid", "type"} {
		if modelNamed(path, field, bs, as, out) {
			return
		}
	}
	for i := range max(len(bs), len(as)) {
		var x, y any
		if i < len(bs) {
			x = bs[i]
		}
		if i < len(as) {
			y = as[i]
		}
		modelAt(fmt.Sprintf("%s[%d]", path, i), x, y, out)
	}
}

// modelNamed compares lists of maps that all have a field with a unique text; it returns false if they do not.
func modelNamed(path, field string, before, after []any, out map[string][2]string) bool {
	var orders [2][]string
	var found [2]map[string]any
	for side, list := range [][]any{before, after} {
		found[side] = map[string]any{}
		for _, e := range list {
			m, _ := e.(map[string]any)
			id, _ := m[field].(string)
			if id == "" || found[side][id] != nil {
				return false
			}
			found[side][id] = m
			orders[side] = append(orders[side], id)
		}
	}
	for side := range orders {
		for _, id := range orders[side] {
			modelAt(path+"["+field+"="+id+"]", found[0][id], found[1][id], out)
		}
		orders[side] = slices.DeleteFunc(orders[side], func(id string) bool { return found[1-side][id] == nil })
	}
	if !slices.Equal(orders[0], orders[1]) {
		b, a := any(orders[0]), any(orders[1])
		out[strings.TrimPrefix(path+Order, ".")] = [2]string{jsonOf(b), jsonOf(a)}
	}
	return true
}

func modelAt(path string, before, after any, out map[string][2]string) {
	if reflect.DeepEqual(before, after) {
		return
	}
	switch {
	case before == nil:
		before = nothingOf(after)
	case after == nil:
		after = nothingOf(before)
	}
	_, bothMaps := before.(map[string]any)
	_, toMap := after.(map[string]any)
	_, bothLists := before.([]any)
	_, toList := after.([]any)
	if bothMaps && toMap || bothLists && toList {
		model(path, before, after, out)
		return
	}
	out[strings.TrimPrefix(path, ".")] = [2]string{jsonOf(before), jsonOf(after)}
}

// nothingOf is the counterpart of v if v is reported by its parts: an empty value of its type if it is a long map or
// list.
func nothingOf(v any) any {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic(err)
	}
	if len(b) <= MaxValue {
		return nil
	}
	switch v.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return nil
}

// jsonOf returns "" for nil: the model's values have no null.
func jsonOf(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func randomValue(rnd *rand.Rand, depth int) any {
	switch kind := rnd.IntN(6); {
	case kind == 0 && depth > 0:
		list := make([]any, rnd.IntN(4))
		field := ""
		if rnd.IntN(2) == 0 {
			field = []string{"name", "uid", "type"}[rnd.IntN(3)]
		}
		for i := range list {
			list[i] = randomValue(rnd, depth-1)
			if field != "" {
				m := randomMap(rnd, depth-1)
				m[field] = string(rune('a' + rnd.IntN(5)))
				list[i] = m
			}
		}
		return list
	case kind <= 2 && depth > 0:
		return randomMap(rnd, depth-1)
	case kind == 3:
		return rnd.IntN(2) == 0
	case kind == 4:
		return rnd.Int64N(300) - 100
	}
	return strings.Repeat("s", rnd.IntN(40))
}

func randomMap(rnd *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	if field := rnd.IntN(5); field < 3 { // the identity of list elements
		m[[]string{"name", "uid", "type"}[field]] = string(rune('a' + rnd.IntN(4)))
	}
	for range rnd.IntN(5) {
		m[string(rune('a'+rnd.IntN(5)))] = randomValue(rnd, depth)
	}
	return m
}

func TestPacked_AgreesWithADumbModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 5000 {
		before, after := randomMap(rnd, 3), randomMap(rnd, 3)
		want := map[string][2]string{}
		model("", before, after, want)
		if len(want) > MaxChanges {
			continue
		}
		changes, err := Packed(packOf(t, before), packOf(t, after), Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][2]string{}
		for _, c := range changes {
			got[c.Path] = [2]string{c.Before, c.After}
		}
		for path, w := range want {
			want[path] = [2]string{text.Clip(w[0], MaxValue), text.Clip(w[1], MaxValue)}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != len(changes) {
			t.Fatalf("%v to %v (-want +got):\n%s", before, after, diff)
		}
		compared++
	}
	if compared < 4000 {
		t.Errorf("compared only %d", compared)
	}
}

// Invalid packed objects cause an error or a difference, and never a panic; two valid and equal ones never differ.
func FuzzPacked(f *testing.F) {
	f.Add(packOf(f, map[string]any{"a": int64(1), "b": []any{"x", nil, 1.5}}), packOf(f, map[string]any{"a": "long", "c": map[string]any{}}))
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, []byte{0x81, 0xa1, 'a'})
	f.Fuzz(func(t *testing.T, before, after []byte) {
		changes, err := Packed(before, after, Bounds{})
		if len(changes) > MaxChanges+1 {
			t.Errorf("%d changes", len(changes))
		}
		if err != nil {
			return
		}
		_, errB := abi.DecodeObject(before)
		_, errA := abi.DecodeObject(after)
		if errB == nil && errA == nil && len(changes) == 0 && !reflect.DeepEqual(shown(t, before), shown(t, after)) {
			t.Errorf("%x and %x are said to be alike", before, after)
		}
	})
}

// shown returns the object without the fields that Packed ignores.
func shown(t *testing.T, b []byte) map[string]any {
	m, err := abi.DecodeObject(b)
	if err != nil {
		t.Fatal(err)
	}
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "resourceVersion")
		delete(meta, "managedFields")
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	return m
}

func BenchmarkPacked(b *testing.B) {
	object := map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{"a": "b", "c": "d"}}}
	var containers []any
	for i := range 20 {
		containers = append(containers, map[string]any{"name": fmt.Sprint(i), "image": strings.Repeat("i", 100), "ports": []any{int64(80), int64(443)}})
	}
	object["spec"] = map[string]any{"containers": containers, "replicas": int64(1)}
	before := packOf(b, object)
	object["spec"].(map[string]any)["replicas"] = int64(2)
	after := packOf(b, object)
	b.SetBytes(int64(len(before)))
	b.ReportAllocs()
	for b.Loop() {
		if c, err := Packed(before, after, Bounds{}); err != nil || len(c) != 1 {
			b.Fatal(c, err)
		}
	}
}
