// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// decode reads JSON like the dynamic client: integers are int64.
func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

func pack(t testing.TB, text string) *reflector.Object {
	t.Helper()
	o, err := reflector.Pack(decode(t, text), reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const full = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{
	"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"42","generation":7,
	"deletionTimestamp":"2026-01-02T03:04:05Z","labels":{"b":"2","a":"1"},
	"ownerReferences":[
		{"apiVersion":"apps/v1beta1","kind":"Deployment","name":"d","uid":"u-2","controller":true},
		{"apiVersion":"v1","kind":"Node","name":"n","uid":"u-3"}],
	"managedFields":[{"manager":"kubectl"}]},"data":{"k":"v"}}`

func TestPack_KeepsWhatTheHostReads(t *testing.T) {
	o := pack(t, full)
	if got, want := o.Ref(), (reflector.ObjectRef{Namespace: "shop", Name: "web"}); got != want {
		t.Errorf("Ref = %v, want %v", got, want)
	}
	if o.UID() != "u-1" || o.ResourceVersion() != "42" || o.Generation() != 7 || !o.Deleting() {
		t.Errorf("uid, resourceVersion, generation, deleting = %q, %q, %d, %t", o.UID(), o.ResourceVersion(), o.Generation(), o.Deleting())
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, maps.Collect(o.Labels().All())); diff != "" {
		t.Error(diff)
	}
	want := []reflector.Owner{
		{Group: "apps", Kind: "Deployment", Name: "d", UID: "u-2", Controller: true},
		{Kind: "Node", Name: "n", UID: "u-3"},
	}
	if diff := cmp.Diff(want, slices.Collect(o.Owners())); diff != "" {
		t.Error(diff)
	}
}

func TestPack_DropsManagedFieldsUnlessAskedFor(t *testing.T) {
	content := decode(t, full)
	before := decode(t, full)
	for _, keep := range []bool{false, true} {
		o, err := reflector.Pack(content, reflector.Options{ManagedFields: keep})
		if err != nil {
			t.Fatal(err)
		}
		got, err := abi.DecodeObject(o.Msgpack())
		if err != nil {
			t.Fatal(err)
		}
		want := decode(t, full)
		if !keep {
			unstructured.RemoveNestedField(want, "metadata", "managedFields")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keep=%t: %s", keep, diff)
		}
		if len(o.Msgpack()) != cap(o.Msgpack()) {
			t.Errorf("keep=%t: %d bytes in a slice of %d", keep, len(o.Msgpack()), cap(o.Msgpack()))
		}
	}
	if diff := cmp.Diff(before, content); diff != "" {
		t.Errorf("Pack changed its input: %s", diff)
	}
}

func TestPack_EqualObjectsGiveEqualBytes(t *testing.T) {
	first := pack(t, full).Msgpack()
	for range 20 { // map iteration order differs from run to run
		if !slices.Equal(first, pack(t, full).Msgpack()) {
			t.Fatal("same object, other bytes")
		}
	}
}

func TestPack_RefusesBadObjectsByName(t *testing.T) {
	deep := any("x")
	for range abi.MaxDepth + 1 {
		deep = []any{deep}
	}
	name := map[string]any{"name": "a"}
	for want, content := range map[string]map[string]any{
		"object: metadata: want a map":                     {"kind": "x"},
		"metadata: name: is missing":                       {"metadata": map[string]any{}},
		"uid: want a string":                               {"metadata": map[string]any{"name": "a", "uid": int64(1)}},
		"object[a]: metadata: generation: want an integer": {"metadata": map[string]any{"name": "a", "generation": "1"}},
		"labels: want a map":                               {"metadata": map[string]any{"name": "a", "labels": "x"}},
		"labels[k]: want a string":                         {"metadata": map[string]any{"name": "a", "labels": map[string]any{"k": nil}}},
		"ownerReferences: want a list":                     {"metadata": map[string]any{"name": "a", "ownerReferences": name}},
		"ownerReferences[0]: want a map":                   {"metadata": map[string]any{"name": "a", "ownerReferences": []any{"x"}}},
		"ownerReferences[0]: kind: want a string":          {"metadata": map[string]any{"name": "a", "ownerReferences": []any{map[string]any{"kind": true}}}},
		"object[a]: encode: msgpack nests deeper than":     {"metadata": name, "spec": deep},
	} {
		o, err := reflector.Pack(content, reflector.Options{})
		if err == nil || o != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Pack(...) = %v, %v; want an error with %q", o, err, want)
		}
	}
}

func TestLabels_MatchSelectors(t *testing.T) {
	o := pack(t, full)
	for text, want := range map[string]bool{
		"": true, "a=1": true, "a=2": false, "a,b": true, "!c": true, "c": false, "a in (1,3),b!=3": true,
	} {
		sel, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := sel.Matches(o.Labels()); got != want {
			t.Errorf("%q matches: %t, want %t", text, got, want)
		}
	}
	if (reflector.Labels{}).Has("a") || o.Labels().Len() != 2 {
		t.Error("Has or Len")
	}
}

func TestObject_IsAnObjectToClientGo(t *testing.T) {
	m, err := meta.Accessor(pack(t, full))
	if err != nil {
		t.Fatal(err)
	}
	if m.GetName() != "web" || m.GetNamespace() != "shop" || m.GetResourceVersion() != "42" || m.GetUID() != "u-1" {
		t.Errorf("got %v", m)
	}
}

func TestObject_SameNeedsUIDAndResourceVersion(t *testing.T) {
	state := func(uid, rv string) *reflector.Object {
		return pack(t, `{"apiVersion":"v1","kind":"K","metadata":{"name":"a","uid":"`+uid+`","resourceVersion":"`+rv+`"}}`)
	}
	a := state("u", "1")
	if !a.Same(state("u", "1")) || a.Same(state("u", "2")) || a.Same(state("v", "1")) {
		t.Error("Same does not compare uid and resourceVersion")
	}
	if state("u", "").Same(state("u", "")) {
		t.Error("without a resourceVersion, two states cannot be known to be the same")
	}
}

// Annotations, finalizers and the type are read from the bytes: they must equal the decoded ones, whatever precedes
// them.
func TestObject_ReadsFieldsFromItsBytes(t *testing.T) {
	filler := strings.Repeat("x", 70_000)
	for _, text := range []string{
		`{"apiVersion":"apps/v1","kind":"K","metadata":{"name":"a","annotations":{"b":"2","a":"1","":""},"finalizers":["f/1","f/2"]}}`,
		`{"aa":[1,-1,300,-300,70000,-70000,5000000000,-5000000000,1.5,null,true,{"x":"` + filler + `"}],"kind":"K",
			"metadata":{"name":"a","annotations":{"k":"` + filler + `"},"finalizers":["` + filler[:300] + `"]}}`,
		`{"kind":"K","metadata":{"name":"a","annotations":{},"finalizers":[]}}`,
		`{"kind":"K","metadata":{"name":"a","annotations":null}}`,
		`{"kind":"K","metadata":{"name":"a","annotations":{"a":1},"finalizers":[1,"f"]}}`,
		`{"kind":"K","metadata":{"name":"a","annotations":["a"],"finalizers":{"f":1}}}`,
	} {
		o := pack(t, text)
		u := &unstructured.Unstructured{Object: decode(t, text)}
		comparePacked(t, o, u)
	}
}

// comparePacked compares the fields that o reads from its bytes with decoded ones.
func comparePacked(t *testing.T, o *reflector.Object, u *unstructured.Unstructured) {
	t.Helper()
	meta := u.Object["metadata"].(map[string]any)
	want := map[string]string{}
	annotations, _ := meta["annotations"].(map[string]any)
	for k, v := range annotations {
		want[k], _ = v.(string)
		if got, ok := o.Annotation(k); !ok || got != want[k] {
			t.Errorf("Annotation(%q) = %q, %t; want %q", k, got, ok, want[k])
		}
	}
	if diff := cmp.Diff(want, maps.Collect(o.Annotations())); diff != "" {
		t.Errorf("Annotations: %s", diff)
	}
	if _, ok := o.Annotation("wasmctl.dev/not-there"); ok || o.HasFinalizer("wasmctl.dev/not-there") {
		t.Error("has what is not there")
	}
	var finalizers []string
	list, _ := meta["finalizers"].([]any)
	for _, f := range list {
		name, _ := f.(string)
		if finalizers = append(finalizers, name); !o.HasFinalizer(name) {
			t.Errorf("HasFinalizer(%q) is false", name)
		}
	}
	if diff := cmp.Diff(finalizers, slices.Collect(o.Finalizers())); diff != "" {
		t.Errorf("Finalizers: %s", diff)
	}
	if apiVersion, _ := u.Object["apiVersion"].(string); o.APIVersion() != apiVersion || o.Kind() != u.GetKind() {
		t.Errorf("type %q %q, want %q %q", o.APIVersion(), o.Kind(), apiVersion, u.GetKind())
	}
}

// With Metadata, nothing else is stored, and the type is the given one.
func TestPack_KeepsMetadataOnly(t *testing.T) {
	content := decode(t, full)
	opts := reflector.Options{Metadata: true, APIVersion: "v1", Kind: "Pod"}
	o, err := reflector.Pack(content, opts)
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, full)
	unstructured.RemoveNestedField(want, "metadata", "managedFields")
	want = map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": want["metadata"]}
	got, err := abi.DecodeObject(o.Msgpack())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if o.Labels().Len() != 2 || !o.Deleting() || len(slices.Collect(o.Owners())) != 2 {
		t.Error("labels, deletion or owners are missing")
	}
	if diff := cmp.Diff(decode(t, full), content); diff != "" {
		t.Errorf("Pack changed its input: %s", diff)
	}
}

func TestObject_MapsAlike(t *testing.T) {
	base := `{"kind":"K","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"},
		"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}],"resourceVersion":"1"},"spec":1}`
	for change, alike := range map[string]bool{
		`"spec":1->"spec":2`: true, `"resourceVersion":"1"->"resourceVersion":"2"`: true,
		`"l":"1"->"l":"2"`: false, `"l":"1"->`: false, `"a":"1"->"a":"2"`: false, `"a":"1"->`: false,
		`"name":"n"->"name":"m"`: false, `"uid":"u"->"uid":"v"`: false,
	} {
		from, to, _ := strings.Cut(change, "->")
		a, b := pack(t, base), pack(t, strings.Replace(base, from, to, 1))
		if a.MapsAlike(b) != alike || b.MapsAlike(a) != alike {
			t.Errorf("%s: alike is not %t", change, alike)
		}
	}
}

// FuzzPack: for any JSON, Pack returns an error or an object whose bytes decode to the input.
func FuzzPack(f *testing.F) {
	f.Add(full)
	f.Add(`{"apiVersion":"v1","kind":"K","metadata":{"name":"a"},"x":[1,-1,1.5,null,true,{"":""}]}`)
	f.Add(`{"kind":"K","metadata":{"name":"a","labels":{"a":1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		o, err := reflector.Pack(u.Object, reflector.Options{ManagedFields: true})
		if err != nil {
			return
		}
		got, err := abi.DecodeObject(o.Msgpack())
		if err != nil {
			t.Fatalf("packed object does not decode: %v", err)
		}
		comparePacked(t, o, u)
		// Compare through JSON: -0 and 0 are the same number for msgpack's reader.
		want, _ := json.Marshal(u.Object)
		have, _ := json.Marshal(got)
		if string(want) != string(have) {
			t.Errorf("in:  %s\nout: %s", want, have)
		}
	})
}
