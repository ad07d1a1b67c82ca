// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

const refKey = "example.com/target"

// tagged is an object with a value of its label and annotation refKey; "" means none.
func tagged(t testing.TB, namespace, name, value string) *reflector.Object {
	t.Helper()
	meta := map[string]any{"name": name, "uid": "u"}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	if value != "" {
		meta["labels"] = map[string]any{"other": "x", refKey: value}
		meta["annotations"] = map[string]any{"other": "x", refKey: value}
	}
	o, err := reflector.Pack(map[string]any{"metadata": meta}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// changesOf returns the events of one object whose value changes from a to b; "" means no value, and "-" no object.
func changesOf(t testing.TB, a, b string) reflector.Event {
	t.Helper()
	ev := reflector.Event{Type: reflector.Applied}
	if a != "-" {
		ev.Old = tagged(t, "own", "s", a)
	}
	if b == "-" {
		ev.Type = reflector.Deleted
		return ev
	}
	ev.New = tagged(t, "own", "s", b)
	return ev
}

// As in rule 24, but for references: the objects named before and after, each once.
func TestReference_ChangeRequestsOldAndNew(t *testing.T) {
	label, annotation := queue.Label{Key: refKey}.Map, queue.Annotation{Key: refKey}.Map
	for _, c := range []struct {
		old, now string
		want     []string
	}{
		{"-", "a", []string{"own/a"}},
		{"-", "", nil},
		{"", "a", []string{"own/a"}},
		{"a", "a", []string{"own/a"}},
		{"a", "b", []string{"own/a", "own/b"}},
		{"a", "", []string{"own/a"}},
		{"a", "-", []string{"own/a"}},
		{"", "-", nil},
	} {
		ev := changesOf(t, c.old, c.now)
		if diff := cmp.Diff(c.want, names(label, ev)); diff != "" {
			t.Errorf("label %q to %q: %s", c.old, c.now, diff)
		}
		if diff := cmp.Diff(c.want, names(annotation, ev)); diff != "" {
			t.Errorf("annotation %q to %q: %s", c.old, c.now, diff)
		}
	}
}

func TestAnnotation_NamesOneOrSeveralAnywhere(t *testing.T) {
	for value, want := range map[string][]string{
		"a":              {"own/a"},
		"ns/a":           {"ns/a"},
		"a, ns/b ,own/c": {"own/a", "ns/b", "own/c"},
		"a,own/a,a":      {"own/a"},
		",a,,":           {"own/a"},
		" ":              nil,
	} {
		if diff := cmp.Diff(want, names(queue.Annotation{Key: refKey}.Map, changesOf(t, "-", value))); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
	ev := changesOf(t, "a,b", "ns/c, b")
	if diff := cmp.Diff([]string{"own/a", "own/b", "ns/c"}, names(queue.Annotation{Key: refKey}.Map, ev)); diff != "" {
		t.Errorf("a change: %s", diff)
	}
}

// Rule 1: the reconciled kind determines the namespace, not the object that contains the value.
func TestReference_ClusterScopedTargets(t *testing.T) {
	target := queue.Target{ClusterScoped: true}
	ev := changesOf(t, "-", "node")
	if diff := cmp.Diff([]string{"node"}, names(queue.Label{refKey, target}.Map, ev)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node"}, names(queue.Annotation{refKey, target}.Map, ev)); diff != "" {
		t.Error(diff)
	}
	from := reflector.Event{Type: reflector.Applied, New: tagged(t, "", "cluster", "ns/a")}
	if diff := cmp.Diff([]string{"ns/a"}, names(queue.Annotation{Key: refKey}.Map, from)); diff != "" {
		t.Errorf("from a cluster-scoped object: %s", diff)
	}
}

func TestReference_InvalidValueIsToldAndTheRestIsMapped(t *testing.T) {
	type reported struct {
		Object, Key, Value string
		Err                bool
	}
	var got []reported
	target := queue.Target{OnInvalid: func(object reflector.ObjectRef, key, value string, err error) {
		got = append(got, reported{object.String(), key, value, err != nil})
	}}
	if diff := cmp.Diff([]string{"own/b"}, names(queue.Annotation{refKey, target}.Map, changesOf(t, "-", "x/y/z, b"))); diff != "" {
		t.Error(diff)
	}
	from := reflector.Event{Type: reflector.Applied, New: tagged(t, "", "cluster", "a")}
	if got := names(queue.Annotation{refKey, target}.Map, from); got != nil {
		t.Errorf("no namespace: requests %v", got)
	}
	want := []reported{{"own/s", refKey, "x/y/z", true}, {"cluster", refKey, "a", true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnnotation_TargetsAreBounded(t *testing.T) {
	var many []string
	for i := range queue.MaxTargets + 10 {
		many = append(many, fmt.Sprint("t", i))
	}
	reported := 0
	target := queue.Target{OnInvalid: func(reflector.ObjectRef, string, string, error) { reported++ }}
	got := names(queue.Annotation{refKey, target}.Map, changesOf(t, "-", strings.Join(many, ",")))
	if len(got) != queue.MaxTargets || reported != 1 {
		t.Errorf("%d requests, told %d times", len(got), reported)
	}
}

func TestReference_ReasonNamesTheRelatedObject(t *testing.T) {
	want := []queue.Request{{
		Ref: ref("own", "a"), Low: true,
		Reason: abi.Reason{Type: abi.ReasonRelated, Resource: "secrets", Ref: ref("own", "s")},
	}}
	ev := reflector.Event{Type: reflector.Listed, New: tagged(t, "own", "s", "a")}
	target := queue.Target{Resource: "secrets"}
	for _, m := range []queue.Mapper{queue.Label{refKey, target}.Map, queue.Annotation{refKey, target}.Map} {
		if diff := cmp.Diff(want, m(nil, ev)); diff != "" {
			t.Error(diff)
		}
	}
}
