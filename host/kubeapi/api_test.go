// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestCall_CreateAndGet(t *testing.T) {
	s := sharedSession(t)
	data := map[string]any{"text": "größe", "n": "1"}
	made := s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("a", data)})
	got := s.ok(abi.OpAPIGet, s.ref("a"))
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("what create answered and what is stored differ:\n%s", diff)
	}
	if diff := cmp.Diff(data, got["data"]); diff != "" {
		t.Error(diff)
	}
	if m := managers(got); m != "wasmctl/tester" {
		t.Errorf("field managers: %s", m)
	}
	s.seen("a")
	if at(s.ok(abi.OpAPIGet, with(s.ref("a"), "resourceVersion", "0")), "metadata", "uid") != at(made, "metadata", "uid") {
		t.Error("a get from the API server's cache answers another object")
	}
	s.fails(500, "resourceVersion: Invalid value", abi.OpAPIGet, with(s.ref("a"), "resourceVersion", "nonsense"))
	gone := s.fails(404, `configmaps "none" not found`, abi.OpAPIGet, s.ref("none"))
	if gone["reason"] != "NotFound" || at(gone, "details", "name") != "none" || at(gone, "details", "kind") != "configmaps" {
		t.Errorf("status: %v", gone)
	}
	again := s.fails(409, "already exists", abi.OpAPICreate, map[string]any{"object": s.cm("a", data)})
	if again["reason"] != "AlreadyExists" {
		t.Errorf("reason: %v", again["reason"])
	}
}

// seen returns once the API server's cache has a ConfigMap: only a get without a
// resourceVersion is promised to see a write at once.
func (s *session) seen(name string) {
	s.t.Helper()
	client, err := dynamic.NewForConfig(devclustertest.Shared(s.t).RESTConfig())
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(s.ns).
		Watch(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name}) // watches are served from that cache
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	if ev := <-w.ResultChan(); ev.Type != watch.Added {
		s.t.Fatalf("watch of %s: %v", name, ev)
	}
}

// TestCall_GetWithoutAVersionSeesTheLastWrite: none of the writes of a module is
// missing in its next read, whatever the API server's cache has.
func TestCall_GetWithoutAVersionSeesTheLastWrite(t *testing.T) {
	s := sharedSession(t)
	for i := range 50 {
		name := fmt.Sprint("w", i)
		made := s.ok(abi.OpAPICreate, map[string]any{"object": s.cm(name, nil)})
		patched := s.ok(abi.OpAPIPatch, with(s.ref(name), "patchType", "merge", "patch", map[string]any{"data": map[string]any{"k": name}}))
		if got := s.ok(abi.OpAPIGet, s.ref(name)); at(got, "metadata", "uid") != at(made, "metadata", "uid") || !cmp.Equal(got, patched) {
			t.Fatalf("%s: %v, written %v", name, got, patched)
		}
		if items := s.ok(abi.OpAPIList, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.ns, "fieldSelector": "metadata.name=" + name})["items"].([]any); len(items) != 1 {
			t.Fatalf("list: %v", items)
		}
		s.ok(abi.OpAPIDelete, s.ref(name))
		s.fails(404, "not found", abi.OpAPIGet, s.ref(name))
	}
}

func TestCall_CreateTakesTheRestFromTheRequest(t *testing.T) {
	s := sharedSession(t)
	made := s.ok(abi.OpAPICreate, with(s.ref("a"), "object", map[string]any{"data": map[string]any{"k": "v"}}, "fieldManager", "me"))
	if at(made, "metadata", "name") != "a" || at(made, "metadata", "namespace") != s.ns || managers(made) != "me" {
		t.Errorf("made %v", made)
	}
	generated := s.ok(abi.OpAPICreate, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "gen-", "namespace": s.ns},
	}})
	if name := at(generated, "metadata", "name").(string); !strings.HasPrefix(name, "gen-") || len(name) <= 4 {
		t.Errorf("generated name: %s", name)
	}
}

func TestCall_InvalidObjects(t *testing.T) {
	s := sharedSession(t)
	invalid := s.fails(422, "Invalid value", abi.OpAPICreate, map[string]any{"object": s.cm("Not_A_Name", nil)})
	if invalid["reason"] != "Invalid" || at(invalid, "details", "causes", 0, "field") != "metadata.name" {
		t.Errorf("status: %v", invalid)
	}
	odd := map[string]any{"object": with(s.cm("a", nil), "colour", "red")}
	s.fails(400, `unknown field "colour"`, abi.OpAPICreate, with(odd, "fieldValidation", "Strict"))
	s.ok(abi.OpAPICreate, with(odd, "fieldValidation", "Warn"))
	if !strings.Contains(s.log.String(), `unknown field \"colour\"`) {
		t.Errorf("the API server's warning is not in the log:\n%s", s.log)
	}
	s.fails(422, "", abi.OpAPIPatch, with(s.ref("a"), "patchType", "json", "patch", []any{map[string]any{"op": "remove", "path": "/data/none"}}))
}

func TestCall_DryRunLeavesNothing(t *testing.T) {
	s := sharedSession(t)
	dry := map[string]any{"dryRun": true, "object": s.cm("a", map[string]any{"k": "dry"})}
	s.ok(abi.OpAPICreate, dry)
	s.ok(abi.OpAPIApply, dry)
	s.fails(404, "not found", abi.OpAPIGet, s.ref("a"))
	s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("a", map[string]any{"k": "real"})})
	s.ok(abi.OpAPIUpdate, dry)
	s.ok(abi.OpAPIApply, with(dry, "force", true))
	s.ok(abi.OpAPIPatch, with(s.ref("a"), "dryRun", true, "patchType", "merge", "patch", map[string]any{"data": map[string]any{"k": "dry"}}))
	s.ok(abi.OpAPIDelete, with(s.ref("a"), "dryRun", true))
	if got := s.ok(abi.OpAPIGet, s.ref("a")); at(got, "data", "k") != "real" {
		t.Errorf("data after dry runs: %v", got["data"])
	}
}

func TestCall_UpdateAndItsPreconditions(t *testing.T) {
	s := sharedSession(t)
	made := s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("a", map[string]any{"k": "1"})})
	uid, rv := at(made, "metadata", "uid"), at(made, "metadata", "resourceVersion")
	made["data"] = map[string]any{"k": "2"}
	second := s.ok(abi.OpAPIUpdate, map[string]any{"object": made, "fieldManager": "me"})
	if at(second, "data", "k") != "2" || !strings.Contains(managers(second), "me") {
		t.Errorf("updated: %v", second)
	}
	stale := s.fails(409, "the object has been modified", abi.OpAPIUpdate, map[string]any{"object": made})
	if stale["reason"] != "Conflict" {
		t.Errorf("reason: %v", stale["reason"])
	}
	next := map[string]any{"object": s.cm("a", map[string]any{"k": "3"})}
	s.fails(409, "", abi.OpAPIUpdate, with(next, "preconditions", map[string]any{"resourceVersion": rv}))
	s.fails(409, "", abi.OpAPIUpdate, with(next, "preconditions", map[string]any{"uid": "00000000-0000-0000-0000-000000000000"}))
	now := at(second, "metadata", "resourceVersion")
	third := s.ok(abi.OpAPIUpdate, with(next, "preconditions", map[string]any{"resourceVersion": now, "uid": uid}))
	if at(third, "data", "k") != "3" {
		t.Errorf("updated: %v", third)
	}
	s.fails(404, "not found", abi.OpAPIUpdate, map[string]any{"object": s.cm("none", nil)})
	s.fails(400, `unknown field "odd"`, abi.OpAPIUpdate, map[string]any{"object": with(s.cm("a", nil), "odd", 1), "fieldValidation": "Strict"})
}

func TestCall_PatchAndItsPreconditions(t *testing.T) {
	s := sharedSession(t)
	made := s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("a", map[string]any{"k": "0", "gone": "soon"})})
	uid, old := at(made, "metadata", "uid"), at(made, "metadata", "resourceVersion")
	patches := map[string]any{
		"json": []any{
			map[string]any{"op": "test", "path": "/data/gone", "value": "soon"},
			map[string]any{"op": "remove", "path": "/data/gone"},
			map[string]any{"op": "add", "path": "/data/k", "value": "json"},
		},
		"merge":     map[string]any{"data": map[string]any{"k": "merge", "gone": nil}},
		"strategic": map[string]any{"data": map[string]any{"k": "strategic", "$patch": "replace"}},
	}
	for _, kind := range []string{"json", "merge", "strategic"} {
		req := with(s.ref("a"), "patchType", kind, "patch", patches[kind], "fieldManager", "me-"+kind)
		got := s.ok(abi.OpAPIPatch, req)
		if diff := cmp.Diff(map[string]any{"k": kind}, got["data"]); diff != "" || !strings.Contains(managers(got), "me-"+kind) {
			t.Errorf("%s: %s\nmanagers %s", kind, diff, managers(got))
		}
		simple := req
		if kind == "json" {
			simple = with(req, "patch", []any{map[string]any{"op": "add", "path": "/data/k", "value": "json"}})
		}
		s.fails(409, "", abi.OpAPIPatch, with(simple, "preconditions", map[string]any{"resourceVersion": old}))
		s.fails(409, "", abi.OpAPIPatch, with(simple, "preconditions", map[string]any{"uid": "00000000-0000-0000-0000-000000000000"}))
		s.ok(abi.OpAPIPatch, with(simple, "preconditions", map[string]any{"resourceVersion": at(got, "metadata", "resourceVersion"), "uid": uid}))
	}
	s.fails(404, "not found", abi.OpAPIPatch, with(s.ref("none"), "patchType", "merge", "patch", map[string]any{}))
	s.fails(422, "unknown field", abi.OpAPIPatch, with(s.ref("a"), "patchType", "merge", "patch", map[string]any{"odd": 1}, "fieldValidation", "Strict"))
	s.fails(415, "", abi.OpAPIPatch, with(s.sprocketRef("none"), "patchType", "strategic", "patch", map[string]any{}))
}

func TestCall_ApplyAndItsConflicts(t *testing.T) {
	s := sharedSession(t)
	first := s.ok(abi.OpAPIApply, map[string]any{"object": s.cm("a", map[string]any{"k": "1"})})
	if managers(first) != "wasmctl/tester" || at(first, "metadata", "managedFields", 0, "operation") != "Apply" {
		t.Errorf("managed fields: %v", at(first, "metadata", "managedFields"))
	}
	other := map[string]any{"object": s.cm("a", map[string]any{"k": "2"}), "fieldManager": "other"}
	conflict := s.fails(409, "wasmctl/tester", abi.OpAPIApply, other)
	if conflict["reason"] != "Conflict" || at(conflict, "details", "causes", 0, "field") != ".data.k" {
		t.Errorf("conflict: %v", conflict)
	}
	forced := s.ok(abi.OpAPIApply, with(other, "force", true))
	if at(forced, "data", "k") != "2" || managers(forced) != "other" {
		t.Errorf("forced: %v, managers %s", forced["data"], managers(forced))
	}
	s.fails(409, "", abi.OpAPIApply, with(other, "preconditions", map[string]any{"resourceVersion": at(first, "metadata", "resourceVersion")}))
	s.fails(409, "", abi.OpAPIApply, with(other, "preconditions", map[string]any{"uid": "00000000-0000-0000-0000-000000000000"}))
	s.ok(abi.OpAPIApply, with(other, "preconditions", map[string]any{
		"resourceVersion": at(forced, "metadata", "resourceVersion"), "uid": at(forced, "metadata", "uid"),
	}))
	s.fails(500, `field not declared in schema`, abi.OpAPIApply, map[string]any{"object": with(s.cm("a", nil), "odd", 1)})
	gone := with(other, "object", s.cm("none", nil), "preconditions", map[string]any{"uid": at(forced, "metadata", "uid")})
	s.fails(409, "", abi.OpAPIApply, gone)
}

func TestCall_Delete(t *testing.T) {
	s := sharedSession(t)
	made := s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("a", nil)})
	uid, rv := at(made, "metadata", "uid"), at(made, "metadata", "resourceVersion")
	s.fails(409, "", abi.OpAPIDelete, with(s.ref("a"), "preconditions", map[string]any{"resourceVersion": "1"}))
	s.fails(409, "", abi.OpAPIDelete, with(s.ref("a"), "preconditions", map[string]any{"uid": "00000000-0000-0000-0000-000000000000"}))
	s.fails(422, "propagationPolicy", abi.OpAPIDelete, with(s.ref("a"), "propagationPolicy", "Nonsense"))
	gone := s.ok(abi.OpAPIDelete, with(s.ref("a"), "preconditions", map[string]any{"resourceVersion": rv, "uid": uid}))
	if gone["kind"] != "Status" || gone["status"] != "Success" {
		t.Errorf("answer: %v", gone)
	}
	s.fails(404, "not found", abi.OpAPIDelete, s.ref("a"))

	held := s.cm("b", nil)
	held["metadata"].(map[string]any)["finalizers"] = []any{"kubeapi.wasmctl.dev/test"}
	s.ok(abi.OpAPICreate, map[string]any{"object": held})
	left := s.ok(abi.OpAPIDelete, with(s.ref("b"), "propagationPolicy", "Orphan", "gracePeriodSeconds", 0))
	if left["kind"] != "ConfigMap" || at(left, "metadata", "deletionTimestamp") == nil {
		t.Errorf("an object held by a finalizer: %v", left)
	}
	if !strings.Contains(fmt.Sprint(at(left, "metadata", "finalizers")), "orphan") {
		t.Errorf("the propagation policy did not arrive: %v", at(left, "metadata", "finalizers"))
	}
	s.ok(abi.OpAPIPatch, with(s.ref("b"), "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": nil}}))

	running := s.pod("p")
	running["spec"].(map[string]any)["nodeName"] = "none" // else its grace period is zero
	s.ok(abi.OpAPICreate, map[string]any{"object": running})
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": s.ns, "name": "p"}
	if left := s.ok(abi.OpAPIDelete, with(pod, "gracePeriodSeconds", 7)); at(left, "metadata", "deletionGracePeriodSeconds") != int64(7) {
		t.Errorf("grace period: %v", at(left, "metadata", "deletionGracePeriodSeconds"))
	}
	s.ok(abi.OpAPIDelete, with(pod, "gracePeriodSeconds", 0))
	s.fails(404, "not found", abi.OpAPIGet, pod)
}

// pod is a Pod that nothing runs.
func (s *session) pod(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": s.ns, "labels": map[string]any{"app": name}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}, "terminationGracePeriodSeconds": 30},
	}
}

func TestCall_ListPagesAndSelects(t *testing.T) {
	s := sharedSession(t)
	for i := range 5 {
		o := s.cm(fmt.Sprintf("c%d", i), nil)
		o["metadata"].(map[string]any)["labels"] = map[string]any{"odd": fmt.Sprint(i%2 == 1), "test": s.ns}
		s.ok(abi.OpAPICreate, map[string]any{"object": o})
	}
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.ns, "labelSelector": "test"}
	all := s.ok(abi.OpAPIList, list)
	if all["kind"] != "ConfigMapList" || all["apiVersion"] != "v1" || len(all["items"].([]any)) != 5 || at(all, "metadata", "resourceVersion") == "" {
		t.Fatalf("list: %v", all)
	}
	var names []string
	for page, pages := list, 0; ; pages++ {
		got := s.ok(abi.OpAPIList, with(page, "limit", 2))
		for _, item := range got["items"].([]any) {
			names = append(names, at(item, "metadata", "name").(string))
		}
		token, _ := at(got, "metadata", "continue").(string)
		if token == "" {
			if pages != 2 {
				t.Errorf("%d more pages, want 2", pages)
			}
			break
		}
		page = with(list, "continue", token)
	}
	if diff := cmp.Diff([]string{"c0", "c1", "c2", "c3", "c4"}, names); diff != "" {
		t.Error(diff)
	}
	count := func(req map[string]any) int { return len(s.ok(abi.OpAPIList, req)["items"].([]any)) }
	if n := count(with(list, "labelSelector", "odd=true,test="+s.ns)); n != 2 {
		t.Errorf("label selector: %d", n)
	}
	if n := count(with(list, "fieldSelector", "metadata.name=c3")); n != 1 {
		t.Errorf("field selector: %d", n)
	}
	if n := count(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "test=" + s.ns}); n != 5 {
		t.Errorf("all namespaces: %d", n)
	}
	rv := at(all, "metadata", "resourceVersion")
	exact := s.ok(abi.OpAPIList, with(list, "resourceVersion", rv, "resourceVersionMatch", "Exact"))
	if at(exact, "metadata", "resourceVersion") != rv {
		t.Errorf("resource version %v, want exactly %v", at(exact, "metadata", "resourceVersion"), rv)
	}
	s.fails(400, "continue", abi.OpAPIList, with(list, "continue", "nonsense"))
	s.fails(400, "unable to parse", abi.OpAPIList, with(list, "labelSelector", "a b c"))
}

func TestCall_AnswersOverTheLimitSayHowToPage(t *testing.T) {
	s := sharedSession(t)
	big := strings.Repeat("x", 1000_000)
	for i := range 9 {
		s.ok(abi.OpAPICreate, map[string]any{"object": s.cm(fmt.Sprintf("big%d", i), map[string]any{"k": big})})
	}
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.ns}
	s.fails(abi.StatusTooLarge, "limit and continue", abi.OpAPIList, list)                   // over the bound of the JSON
	s.fails(abi.StatusTooLarge, "limit and continue", abi.OpAPIList, with(list, "limit", 5)) // over that of the msgpack
	if n := len(s.ok(abi.OpAPIList, with(list, "limit", 3))["items"].([]any)); n != 3 {
		t.Errorf("%d objects", n)
	}
}

func TestCall_ClusterScopedKinds(t *testing.T) {
	s := sharedSession(t)
	if got := s.ok(abi.OpAPIGet, map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": s.ns}); at(got, "metadata", "name") != s.ns {
		t.Errorf("namespace: %v", got)
	}
	role := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "kubeapi-" + s.ns}, "rules": []any{}}
	ref := map[string]any{"apiVersion": role["apiVersion"], "kind": "ClusterRole", "name": "kubeapi-" + s.ns}
	s.ok(abi.OpAPIApply, map[string]any{"object": role})
	s.ok(abi.OpAPIUpdate, map[string]any{"object": role})
	s.ok(abi.OpAPIList, map[string]any{"apiVersion": role["apiVersion"], "kind": "ClusterRole", "limit": 1})
	s.ok(abi.OpAPIDelete, ref)
	review := map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{"verb": "get", "resource": "pods"}},
	}
	if got := s.ok(abi.OpAPICreate, map[string]any{"object": review}); at(got, "status", "allowed") != true {
		t.Errorf("a kind without names: %v", got)
	}
}

func TestCall_WarningsOfTheAPIServerAreLoggedOnce(t *testing.T) {
	s := sharedSession(t)
	for range 2 {
		s.ok(abi.OpAPIList, map[string]any{"apiVersion": "v1", "kind": "Endpoints", "namespace": s.ns})
	}
	if n := strings.Count(s.log.String(), "v1 Endpoints is deprecated"); n != 1 {
		t.Errorf("the warning stands in the log %d times:\n%s", n, s.log)
	}
}
