// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

func TestBuilder_WritesWhatAMapWould(t *testing.T) {
	owner := testObject(t, pod)
	ref := ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b := BuildObject(ref).
		Map("labels").Set("app", "web").Set("größe", "").End().
		Controller(owner).
		End().
		Map("spec").SetInt("replicas", -3).SetBool("paused", true).SetValue("none", nil).
		List("args").Add("a").AddValue(1.5).AddMap().Set("k", "v").End().End().
		Map("template").Map("spec").List("containers").AddMap().Set("name", "c") // all of these containers stay open
	got, err := wire.Decode(must(t, b))
	equal(t, err, nil)
	want, err := wire.Decode(must(t, Map{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": Map{
			"name": "web", "namespace": "shop", "labels": Map{"app": "web", "größe": ""},
			"ownerReferences": []any{owner.ControllerRef()},
		},
		"spec": Map{
			"replicas": -3, "paused": true, "none": nil, "args": []any{"a", 1.5, Map{"k": "v"}},
			"template": Map{"spec": Map{"containers": []any{Map{"name": "c"}}}},
		},
	}))
	equal(t, err, nil)
	equal(t, got, want)
	equal(t, string(must(t, Map{"inner": b})), string(must(t, Map{"inner": b}))) // it can be sent again
}

func TestBuilder_ClusterScopedObjectHasNoNamespace(t *testing.T) {
	o := testObject(t, BuildObject(ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: "a"}))
	equal(t, o.Type("metadata", "namespace"), TypeAbsent)
}

func TestBuilder_KeepsTheFirstMistake(t *testing.T) {
	cases := map[string]*Builder{
		"UTF-8":            Build().Set("a", "\xff").End(),
		"a list has no":    Build().List("a").Set("b", "c"),
		"needs a key; use": Build().Add("a"),
		"End without":      Build().Map("a").End().End(),
		"no form":          Build().SetValue("a", func() {}),
	}
	for text, b := range cases {
		_, err := NewObject(b)
		if err == nil || !strings.Contains(err.Error(), text) || !errors.Is(err, b.Err()) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	sent := Build().Set("a", "b")
	must(t, sent)
	equal(t, sent.Set("c", "d").Map("e").Add("f").End().Err() == nil, false)
	deep := Build()
	for range 200 {
		deep.Map("a")
	}
	equal(t, errors.Is(deep.Err(), wire.ErrTooDeep), true)
	many := Build().List("a")
	for range 70_000 {
		many.AddValue(1)
	}
	if _, err := NewValue(many); err == nil {
		t.Error("a list longer than its head can say was written")
	}
}

func TestObject_SetAndRemoveKeepTheRest(t *testing.T) {
	o := testObject(t, pod)
	before := o
	run := Object{Value: o.Value, head: &head{}}
	equal(t, run.Name(), "web")
	if err := run.Set("other", "metadata", "name"); err != nil || run.Name() != "other" {
		t.Errorf("%v, name %s", err, run.Name())
	}
	if err := o.Set(Map{"paused": true}, "spec", "strategy", "x"); err != nil {
		t.Fatal(err)
	}
	equal(t, o.Bool("spec", "strategy", "x", "paused"), true)
	o.Remove("spec", "replicas")
	o.Remove("spec", "nowhere", "deep")
	equal(t, []any{o.Type("spec", "replicas"), o.Len("spec"), before.Int("spec", "replicas")}, []any{TypeAbsent, before.Len("spec"), int64(3)})
	equal(t, o.Strings("spec", "tags"), before.Strings("spec", "tags"))
	if err := o.Set(1, "kind", "x"); err == nil || o.Kind() != "Pod" {
		t.Errorf("a string got a key: %v, kind %s", err, o.Kind())
	}
	if err := o.Set(make(chan int), "spec"); err == nil || o.Len("spec") == 0 {
		t.Errorf("got %v", err)
	}
	var fresh Object
	if err := fresh.Set("x", "metadata", "name"); err != nil || fresh.Name() != "x" {
		t.Errorf("from nothing: %v, %q", err, fresh.Name())
	}
}

func TestDecode_ReturnsATypedPart(t *testing.T) {
	type spec struct {
		Replicas int
	}
	got, err := Decode[map[string]any](testObject(t, pod).Value, "metadata", "annotations")
	equal(t, []any{got, err}, []any{map[string]any{"a/b": "c"}, nil})
	_, err = Decode[spec](testObject(t, pod).Value, "kind")
	equal(t, err == nil, false)
	zero, err := Decode[spec](Value{})
	equal(t, []any{zero, err}, []any{spec{}, nil})
}
