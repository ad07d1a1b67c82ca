// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func owner(apiVersion, kind, name string, controller bool) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": "u", "controller": controller}
}

func object(t testing.TB, namespace, name string, owners ...any) *reflector.Object {
	t.Helper()
	meta := map[string]any{"name": name, "ownerReferences": owners}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	o, err := reflector.Pack(map[string]any{"metadata": meta}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ref(namespace, name string) reflector.ObjectRef {
	return reflector.ObjectRef{Namespace: namespace, Name: name}
}

// Rule 4: the first listing has low priority; an object found by a relist is a missed change, and does not.
func TestSelf_RequestsTheObjectWithItsReason(t *testing.T) {
	o := object(t, "ns", "a")
	for _, c := range []struct {
		ev     reflector.Event
		reason abi.ReasonType
		low    bool
	}{
		{reflector.Event{Type: reflector.Listed, New: o}, abi.ReasonListed, true},
		{reflector.Event{Type: reflector.Relisted, New: o}, abi.ReasonListed, false},
		{reflector.Event{Type: reflector.Relisted, Old: o, New: o}, abi.ReasonListed, false},
		{reflector.Event{Type: reflector.Applied, New: o}, abi.ReasonObjectUpdated, false},
		{reflector.Event{Type: reflector.Applied, Old: o, New: o}, abi.ReasonObjectUpdated, false},
		{reflector.Event{Type: reflector.Deleted, Old: o}, abi.ReasonObjectDeleted, false},
		{reflector.Event{Type: reflector.Deleted, Old: o, New: o}, abi.ReasonObjectDeleted, false},
	} {
		want := []queue.Request{{Ref: ref("ns", "a"), Reason: abi.Reason{Type: c.reason}, Low: c.low}}
		if diff := cmp.Diff(want, queue.Self(nil, c.ev)); diff != "" {
			t.Errorf("%s: %s", c.ev.Type, diff)
		}
	}
}

// names returns the references that the mapper requests.
func names(m queue.Mapper, ev reflector.Event) []string {
	var refs []string
	for _, r := range m(nil, ev) {
		refs = append(refs, r.Ref.String())
	}
	return refs
}

// Rule 24: group and kind decide, the version does not; controller-only is an
// option; cluster-scoped owners have no namespace.
func TestOwners_MatchesGroupAndKind(t *testing.T) {
	child := object(t, "ns", "child",
		owner("apps/v1beta1", "Deployment", "old-version", false),
		owner("apps/v1", "Deployment", "manager", true),
		owner("apps/v1", "StatefulSet", "other-kind", true),
		owner("extensions/v1", "Deployment", "other-group", true),
		owner("v1", "Node", "node", false))
	ev := reflector.Event{Type: reflector.Applied, New: child}
	for what, c := range map[string]struct {
		owners queue.Owners
		want   []string
	}{
		"every owner":     {queue.Owners{Group: "apps", Kind: "Deployment"}, []string{"ns/old-version", "ns/manager"}},
		"controller only": {queue.Owners{Group: "apps", Kind: "Deployment", ControllerOnly: true}, []string{"ns/manager"}},
		"cluster-scoped":  {queue.Owners{Kind: "Node", ClusterScoped: true}, []string{"node"}},
		"core group only": {queue.Owners{Kind: "Deployment"}, nil},
	} {
		if diff := cmp.Diff(c.want, names(c.owners.Map, ev)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// Rule 24: a change requests both old and new owners, an unchanged one only once; a deletion requests them too.
func TestOwners_ChangeRequestsOldAndNew(t *testing.T) {
	mapper := queue.Owners{Group: "apps", Kind: "Deployment"}.Map
	with := func(names ...string) *reflector.Object {
		var owners []any
		for _, n := range names {
			owners = append(owners, owner("apps/v1", "Deployment", n, true))
		}
		return object(t, "ns", "child", owners...)
	}
	for what, c := range map[string]struct {
		ev   reflector.Event
		want []string
	}{
		"moved":              {reflector.Event{Type: reflector.Applied, Old: with("a"), New: with("b")}, []string{"ns/a", "ns/b"}},
		"kept":               {reflector.Event{Type: reflector.Applied, Old: with("a"), New: with("a")}, []string{"ns/a"}},
		"dropped":            {reflector.Event{Type: reflector.Applied, Old: with("a", "b"), New: with("b")}, []string{"ns/a", "ns/b"}},
		"orphaned":           {reflector.Event{Type: reflector.Relisted, Old: with("a"), New: with()}, []string{"ns/a"}},
		"created":            {reflector.Event{Type: reflector.Applied, New: with("a")}, []string{"ns/a"}},
		"deleted":            {reflector.Event{Type: reflector.Deleted, Old: with("a"), New: with("a")}, []string{"ns/a"}},
		"deleted unseen":     {reflector.Event{Type: reflector.Deleted, Old: with("a")}, []string{"ns/a"}},
		"moved when deleted": {reflector.Event{Type: reflector.Deleted, Old: with("a"), New: with("b")}, []string{"ns/a", "ns/b"}},
		"named twice":        {reflector.Event{Type: reflector.Applied, New: with("a", "a")}, []string{"ns/a"}},
	} {
		if diff := cmp.Diff(c.want, names(mapper, c.ev)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// A deletion also requests the objects that wait for the child, each once; nothing else asks for them.
func TestOwners_DeletionRequestsWhatWaits(t *testing.T) {
	asked := 0
	mapper := queue.Owners{Group: "apps", Kind: "Deployment", Waiting: func(child reflector.ObjectRef) []reflector.ObjectRef {
		asked++
		return []reflector.ObjectRef{ref(child.Namespace, "a"), ref(child.Namespace, "b")}
	}}.Map
	child := object(t, "ns", "child", owner("apps/v1", "Deployment", "a", true))
	for _, c := range []struct {
		ev   reflector.Event
		want []string
	}{
		{reflector.Event{Type: reflector.Applied, Old: child, New: child}, []string{"ns/a"}},
		{reflector.Event{Type: reflector.Deleted, Old: child, New: child}, []string{"ns/a", "ns/b"}},
	} {
		if diff := cmp.Diff(c.want, names(mapper, c.ev)); diff != "" {
			t.Errorf("%v: %s", c.ev.Type, diff)
		}
	}
	if asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
}

func TestOwners_ReasonNamesTheRelatedObject(t *testing.T) {
	child := object(t, "ns", "child", owner("apps/v1", "Deployment", "web", true))
	mapper := queue.Owners{Group: "apps", Kind: "Deployment", Resource: "replicasets.apps"}.Map
	want := []queue.Request{{
		Ref:    ref("ns", "web"),
		Reason: abi.Reason{Type: abi.ReasonRelated, Resource: "replicasets.apps", Ref: ref("ns", "child")},
		Low:    true,
	}}
	if diff := cmp.Diff(want, mapper(nil, reflector.Event{Type: reflector.Listed, New: child})); diff != "" {
		t.Error(diff)
	}
	want[0].Low = false
	if diff := cmp.Diff(want, mapper(nil, reflector.Event{Type: reflector.Relisted, New: child})); diff != "" {
		t.Error(diff)
	}
}

// An owner that an earlier event requested is requested again: only the owners of one event are deduplicated.
func TestOwners_AppendsToWhatIsThere(t *testing.T) {
	mapper := queue.Owners{Kind: "Node", ClusterScoped: true}.Map
	ev := reflector.Event{Type: reflector.Applied, New: object(t, "", "pv", owner("v1", "Node", "n", false))}
	if got := mapper(mapper(nil, ev), ev); len(got) != 2 {
		t.Errorf("got %d requests, want 2", len(got))
	}
}

func TestMappers_AllocateNothingIntoRoom(t *testing.T) {
	child := object(t, "ns", "child", owner("apps/v1", "Deployment", "a", true), owner("apps/v1", "Deployment", "b", false))
	ev := reflector.Event{Type: reflector.Applied, Old: child, New: child}
	mappers := []queue.Mapper{queue.Self, queue.Owners{Group: "apps", Kind: "Deployment"}.Map}
	dst := make([]queue.Request, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		for _, m := range mappers {
			dst = m(dst, ev)
		}
		dst = dst[:0]
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
