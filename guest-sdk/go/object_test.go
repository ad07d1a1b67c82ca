// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"testing"
	"time"
)

var pod = Map{
	"apiVersion": "v1", "kind": "Pod",
	"metadata": Map{
		"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "generation": 4,
		"creationTimestamp": "2026-01-02T03:04:05Z", "annotations": Map{"a/b": "c"},
		"ownerReferences": []any{
			Map{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u0"},
			OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u2", Controller: true, BlockOwnerDeletion: true},
		},
	},
	"spec": Map{
		"replicas": 3, "ratio": 0.5, "whole": 2.0, "on": true, "none": nil, "tags": []any{"a", 1, "b"},
		"containers": []any{Map{"name": "c0", "ports": []any{Map{"containerPort": 80}}}, Map{"name": "c1"}},
	},
}

func testObject(t testing.TB, v any) Object {
	t.Helper()
	o, err := NewObject(v)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValue_ReadsByPath(t *testing.T) {
	o := testObject(t, pod)
	equal(t, o.Int("spec", "replicas"), int64(3))
	equal(t, o.Int("spec", "whole"), int64(2))
	equal(t, o.Float("spec", "ratio"), 0.5)
	equal(t, o.Float("spec", "replicas"), 3.0)
	equal(t, o.Bool("spec", "on"), true)
	equal(t, o.Strings("spec", "tags"), []string{"a", "b"})
	equal(t, o.Time("metadata", "creationTimestamp"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	equal(t, o.At("spec").At("containers").Len(), 2)
	equal(t, o.StringMap("metadata", "annotations"), map[string]string{"a/b": "c"})
}

func TestValue_AbsentNilAndOtherTypesAreZero(t *testing.T) {
	o := testObject(t, pod)
	types := map[string]Type{"replicas": TypeInt, "ratio": TypeFloat, "on": TypeBool, "none": TypeNil, "tags": TypeArray, "missing": TypeAbsent}
	for key, want := range types {
		equal(t, o.Type("spec", key), want)
		equal(t, o.Exists("spec", key), want > TypeNil)
		equal(t, o.String("spec", key), "")
	}
	equal(t, o.String("spec", "replicas", "deeper"), "")
	equal(t, o.Int("metadata", "name"), int64(0))
	equal(t, o.Bool("metadata", "name"), false)
	equal(t, o.Time("metadata", "name").IsZero(), true)
	equal(t, o.Len("metadata", "name"), 0)
	var zero Object
	equal(t, []any{zero.Exists(), zero.Name(), zero.Generation(), zero.IsDeleting(), zero.Raw() == nil}, []any{false, "", int64(0), false, true})
}

func TestValue_WalksStopWhereTheLoopDoes(t *testing.T) {
	o := testObject(t, pod)
	var names []string
	for i, c := range o.Elements("spec", "containers") {
		names = append(names, c.String("name"))
		for _, p := range c.Elements("ports") {
			equal(t, []int64{int64(i), p.Int("containerPort")}, []int64{0, 80})
		}
	}
	equal(t, names, []string{"c0", "c1"})
	n := 0
	for key := range o.Entries() {
		n++
		if key == "kind" {
			break
		}
	}
	equal(t, n, 2)
	for range o.Elements("metadata") {
		t.Error("a map has no elements")
	}
	for range o.Entries("spec", "tags") {
		t.Error("an array has no entries")
	}
}

func TestValue_DecodesAPart(t *testing.T) {
	o := testObject(t, pod)
	var spec struct {
		Replicas   int `json:"replicas"`
		Containers []struct {
			Name  string `json:"name"`
			Ports Value  `json:"ports"`
		} `json:"containers"`
	}
	if err := o.Decode(&spec, "spec"); err != nil {
		t.Fatal(err)
	}
	equal(t, []any{spec.Replicas, len(spec.Containers), spec.Containers[1].Name, spec.Containers[0].Ports.Len()}, []any{3, 2, "c1", 1})
	if err := o.Decode(&spec, "missing"); err != nil {
		t.Errorf("absent: %v", err)
	}
	if err := o.Decode(&spec, "kind"); err == nil {
		t.Error("a string was decoded into a struct")
	}
}

func TestValue_CanBeSentAsItIs(t *testing.T) {
	o := testObject(t, pod)
	again := testObject(t, Map{"kind": "Copy", "spec": o.At("spec"), "missing": o.At("nowhere"), "whole": o})
	equal(t, string(again.At("spec").Raw()), string(o.At("spec").Raw()))
	equal(t, string(again.At("whole").Raw()), string(o.Raw()))
	equal(t, again.Type("missing"), TypeNil)
}

func TestObject_Owners(t *testing.T) {
	o := testObject(t, pod)
	equal(t, len(o.OwnerReferences()), 2)
	ctrl, ok := o.Controller()
	equal(t, []any{ctrl.Name, ok}, []any{"rs", true})
	owner := testObject(t, Map{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": Map{"name": "rs", "uid": "u2"}})
	equal(t, owner.ControllerRef(), ctrl)
	equal(t, o.IsControlledBy(owner), true)
	again := testObject(t, Map{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": Map{"name": "rs", "uid": "u3"}})
	equal(t, o.IsControlledBy(again), false)
	_, ok = owner.Controller()
	equal(t, ok, false)
}

func TestObject_Deletion(t *testing.T) {
	o := testObject(t, Map{"metadata": Map{"deletionTimestamp": "2026-01-02T03:04:05Z"}})
	equal(t, []bool{o.IsDeleting(), o.DeletionTimestamp().IsZero(), testObject(t, pod).IsDeleting()}, []bool{true, false, false})
}
