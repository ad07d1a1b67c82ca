// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestDeclare_AppliesInOrderAndOwns(t *testing.T) {
	d := newDeclarer(t)
	sent := d.declare(d.result(configMap("b", "1"), configMap("a", "1"), inMeta(configMap("c", "1"), "namespace", d.ns)))
	if diff := cmp.Diff([]string{"PATCH b", "PATCH a", "PATCH c"}, sent); diff != "" {
		t.Error(diff)
	}
	got := d.ok(abi.OpAPIGet, d.ref("a"))
	want := []any{map[string]any{
		"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "name": "owner", "uid": d.uid(), "controller": true, "blockOwnerDeletion": true,
	}}
	if diff := cmp.Diff(want, at(got, "metadata", "ownerReferences")); diff != "" || managers(got) != "wasmctl/tester" {
		t.Errorf("managers %s, owners:\n%s", managers(got), diff)
	}
}

// TestDeclare_KeepsOtherOwners: the host adds its reference to those that the
// guest gives and to those that others have set.
func TestDeclare_KeepsOtherOwners(t *testing.T) {
	d := newDeclarer(t)
	theirs, given := d.reference("theirs"), d.reference("given")
	delete(theirs, "controller")
	delete(given, "controller")
	d.ok(abi.OpAPICreate, map[string]any{"object": inMeta(d.cm("a", nil), "ownerReferences", []any{theirs})})
	ours := map[string]any{"apiVersion": "v1", "kind": "Wrong", "name": "wrong", "uid": d.uid()}
	d.declare(d.result(inMeta(configMap("a", "1"), "ownerReferences", []any{given, ours})))
	got := d.ok(abi.OpAPIGet, d.ref("a"))
	var uids []string
	for i := 0; at(got, "metadata", "ownerReferences", i) != nil; i++ {
		uids = append(uids, fmt.Sprintf("%v%v", at(got, "metadata", "ownerReferences", i, "uid"), at(got, "metadata", "ownerReferences", i, "controller")))
	}
	want := []string{fmt.Sprintf("%v<nil>", theirs["uid"]), fmt.Sprintf("%v<nil>", given["uid"]), d.uid() + "true"}
	if diff := cmp.Diff(want, uids); diff != "" {
		t.Error(diff)
	}
}

// TestDeclare_ChangesNothingUnlessTheWholeListIsRight: what can be checked
// beforehand is.
func TestDeclare_ChangesNothingUnlessTheWholeListIsRight(t *testing.T) {
	d := newDeclarer(t)
	good := configMap("good", "1")
	role := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "x"}}
	tests := map[string]struct {
		class  abi.ErrorClass
		reason string
		text   string
		child  map[string]any
	}{
		"no name":                {abi.ErrorPermanent, "InvalidResult", "child[1 ConfigMap]: apply: metadata.name is needed", inMeta(good, "name", nil)},
		"generateName":           {abi.ErrorPermanent, "InvalidResult", "set metadata.name", inMeta(good, "generateName", "x-")},
		"no kind":                {abi.ErrorPermanent, "InvalidResult", "kind is needed", with(good, "kind", nil)},
		"no apiVersion":          {abi.ErrorPermanent, "InvalidResult", "apiVersion is needed", with(good, "apiVersion", nil)},
		"odd metadata":           {abi.ErrorPermanent, "InvalidResult", "child.metadata: must be a map", with(good, "metadata", 1)},
		"another namespace":      {abi.ErrorPermanent, "InvalidResult", "the namespace of its owner", inMeta(configMap("x", ""), "namespace", "other")},
		"cluster-scoped":         {abi.ErrorPermanent, "InvalidResult", "cannot own it", role},
		"a path as its name":     {abi.ErrorPermanent, "InvalidResult", "metadata.name", inMeta(good, "name", "a/b")},
		"the owner itself":       {abi.ErrorPermanent, "InvalidResult", "cannot own itself", d.sprocket("owner")},
		"another controller":     {abi.ErrorPermanent, "InvalidResult", "omit controller", inMeta(configMap("x", ""), "ownerReferences", []any{map[string]any{"uid": "u", "name": "n", "controller": true}})},
		"owners that are no map": {abi.ErrorPermanent, "InvalidResult", "must be a list of maps", inMeta(configMap("x", ""), "ownerReferences", []any{1})},
		"twice":                  {abi.ErrorPermanent, "InvalidResult", "same object as child 0", configMap("good", "2")},
		"an unknown kind":        {abi.ErrorTransient, "UnknownKind", "does not know this kind", with(good, "apiVersion", "none.wasmctl.dev/v1")},
		"an unknown core kind":   {abi.ErrorPermanent, "UnknownKind", "did you mean", with(good, "kind", "ConfigMop")},
		"a kind that is denied": {
			abi.ErrorPermanent, "Denied", `{"group":"apps","resource":"replicasets","verbs":["patch","create"],"namespaces":["` + d.ns + `"]}`,
			map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": map[string]any{"name": "x"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, sent := d.refuse(tt.class, tt.reason, tt.text, d.result(good, tt.child))
			if len(sent) > 0 || e.Index != 1 || e.Step != StepApply {
				t.Errorf("sent %v, index %d, step %s", sent, e.Index, e.Step)
			}
		})
	}
	bad := d.result(good)
	bad.Apply = append(bad.Apply, []byte{0xc1})
	d.refuse(abi.ErrorPermanent, "InvalidResult", "child[1]: apply", bad)
	if d.names() != "" {
		t.Errorf("something was applied: %s", d.names())
	}
}

// TestDeclare_ChildrenOfAClusterScopedOwner may be anywhere, and say where.
func TestDeclare_ChildrenOfAClusterScopedOwner(t *testing.T) {
	d := newDeclarer(t)
	kind, err := d.cfg.Resolver.Resolve(t.Context(), "namespaces")
	if err != nil {
		t.Fatal(err)
	}
	d.owner = Owner{kind, msg(t, d.ok(abi.OpAPIGet, map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": d.ns}))}
	d.refuse(abi.ErrorPermanent, "InvalidResult", "metadata.namespace is needed", d.result(configMap("a", "1")))
	role := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "declared-" + d.ns}, "rules": []any{},
	}
	d.refuse(abi.ErrorPermanent, "InvalidResult", "omit the namespace", d.result(inMeta(role, "namespace", d.ns)))
	d.declare(d.result(inMeta(configMap("a", "1"), "namespace", d.ns), role))
	t.Cleanup(func() {
		_ = d.cfg.Client.rest.Delete().AbsPath("apis/rbac.authorization.k8s.io/v1/clusterroles/declared-" + d.ns).Do(context.Background()).Error()
	})
	for _, o := range []map[string]any{d.ref("a"), {"apiVersion": role["apiVersion"], "kind": "ClusterRole", "name": "declared-" + d.ns}} {
		if got := d.ok(abi.OpAPIGet, o); at(got, "metadata", "ownerReferences", 0, "name") != d.ns {
			t.Errorf("owners: %v", at(got, "metadata", "ownerReferences"))
		}
	}
}

// TestDeclare_LeavesForeignChildrenAlone: a child has one controller, and the
// error names it.
func TestDeclare_LeavesForeignChildrenAlone(t *testing.T) {
	d := newDeclarer(t)
	theirs := d.reference("theirs")
	before := d.ok(abi.OpAPICreate, map[string]any{"object": inMeta(d.cm("a", nil), "ownerReferences", []any{theirs})})
	for _, force := range []bool{false, true} {
		r := d.result(configMap("first", "1"), configMap("a", "1"), configMap("later", "1"))
		r.Force = force
		e, _ := d.refuse(abi.ErrorConflict, ReasonForeignController, "it is controlled by Sprocket theirs", r)
		if e.Index != 1 {
			t.Errorf("index %d", e.Index)
		}
	}
	if diff := cmp.Diff(before, d.ok(abi.OpAPIGet, d.ref("a"))); diff != "" {
		t.Errorf("the foreign child was changed:\n%s", diff)
	}
	if d.names() != "a,first" {
		t.Errorf("children: %s, want what came before the failure to stay, and nothing after it", d.names())
	}
}

// TestDeclare_TakesOverWhatNobodyControls, as controller-runtime's
// SetControllerReference does.
func TestDeclare_TakesOverWhatNobodyControls(t *testing.T) {
	d := newDeclarer(t)
	d.ok(abi.OpAPICreate, map[string]any{"object": d.cm("a", map[string]any{"theirs": "1"}), "fieldManager": "them"})
	d.declare(d.result(configMap("a", "1")))
	got := d.ok(abi.OpAPIGet, d.ref("a"))
	if at(got, "data", "theirs") != "1" || at(got, "data", "k") != "1" || at(got, "metadata", "ownerReferences", 0, "uid") != d.uid() {
		t.Errorf("taken over: %v", got)
	}
}

// TestDeclare_ConflictsNameManagersAndFields, and force takes the fields over.
func TestDeclare_ConflictsNameManagersAndFields(t *testing.T) {
	d := newDeclarer(t)
	for manager, data := range map[string]map[string]any{"kubectl \"x\"": {"k": "theirs", "l": "theirs"}, "other": {"m": "theirs"}} {
		d.ok(abi.OpAPIApply, map[string]any{"object": d.cm("a", data), "fieldManager": manager})
	}
	mine := with(configMap("a", "mine"), "data", map[string]any{"k": "mine", "l": "mine", "m": "mine", "n": "mine"})
	r := d.result(configMap("first", "1"), mine, configMap("later", "1"))
	e, _ := d.refuse(abi.ErrorConflict, ReasonFieldConflict, `"kubectl \"x\"" owns .data.k, .data.l; "other" owns .data.m: omit these fields, or take them over with force`, r)
	want := []FieldConflict{{`kubectl "x"`, ".data.k"}, {`kubectl "x"`, ".data.l"}, {"other", ".data.m"}}
	if diff := cmp.Diff(want, e.Conflicts); diff != "" || d.names() != "a,first" {
		t.Errorf("children %s\n%s", d.names(), diff)
	}
	r.Force = true
	d.declare(r)
	if got := d.ok(abi.OpAPIGet, d.ref("a")); at(got, "data", "k") != "mine" || at(got, "data", "m") != "mine" || d.names() != "a,first,later" {
		t.Errorf("forced: %v, children %s", got["data"], d.names())
	}
}

// TestDeclare_DropsFieldsThatAreNoLongerDeclared is what server-side apply does.
func TestDeclare_DropsFieldsThatAreNoLongerDeclared(t *testing.T) {
	d := newDeclarer(t)
	d.declare(d.result(with(configMap("a", ""), "data", map[string]any{"k": "1", "l": "1"})))
	d.declare(d.result(configMap("a", "2")))
	if diff := cmp.Diff(map[string]any{"k": "2"}, d.ok(abi.OpAPIGet, d.ref("a"))["data"]); diff != "" {
		t.Error(diff)
	}
}

// TestDeclare_RemovesKeysOfStringData that are no longer declared. For the API server, the applied field
// is the one in stringData, which a stored Secret does not have.
func TestDeclare_RemovesKeysOfStringData(t *testing.T) {
	d := newDeclarer(t)
	secret := func(fields ...any) map[string]any {
		return d.object("v1", "Secret", "a", fields...)
	}
	read := func() any {
		return d.ok(abi.OpAPIGet, map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": d.ns, "name": "a"})["data"]
	}
	d.declare(d.result(secret("data", map[string]any{"a": "MA==", "b": "MA=="}, "stringData", map[string]any{"b": "1", "c": "\u00e9"})))
	if diff := cmp.Diff(map[string]any{"a": "MA==", "b": "MQ==", "c": "w6k="}, read()); diff != "" {
		t.Error(diff)
	}
	d.declare(d.result(secret("stringData", map[string]any{"c": ""})))
	if diff := cmp.Diff(map[string]any{"c": ""}, read()); diff != "" {
		t.Error(diff)
	}
	d.refuse(abi.ErrorTransient, "InternalError", "stringData", d.result(secret("stringData", map[string]any{"c": 1})))
}

// TestDeclare_AcceptsAChildThatWasRead: an object that a module has read, changed and declared has
// managedFields, which the API server refuses in an apply.
func TestDeclare_AcceptsAChildThatWasRead(t *testing.T) {
	d := newDeclarer(t)
	d.declare(d.result(configMap("a", "1")))
	read := d.ok(abi.OpAPIGet, d.ref("a"))
	if at(read, "metadata", "managedFields", 0) == nil {
		t.Fatalf("read without managedFields: %v", read)
	}
	d.declare(d.result(with(read, "data", map[string]any{"k": "2"})))
	if diff := cmp.Diff(map[string]any{"k": "2"}, d.ok(abi.OpAPIGet, d.ref("a"))["data"]); diff != "" {
		t.Error(diff)
	}
}

// TestDeclare_LeavesTheChildrenToAForegroundDeletion: the garbage collector deletes the children and then
// their owner. A child that is created again would keep the owner.
func TestDeclare_LeavesTheChildrenToAForegroundDeletion(t *testing.T) {
	d := newDeclarer(t)
	d.declare(d.result(configMap("a", "1"), configMap("b", "1")))
	metadata := d.ok(abi.OpAPIGet, d.sprocketRef("owner"))["metadata"].(map[string]any)
	metadata["finalizers"] = []any{"foregroundDeletion"}
	d.owner.Object = msg(t, d.sprocket("owner", "metadata", metadata))
	r := d.result(configMap("a", "2"), configMap("c", "1"))
	r.Prune, r.Status = true, msg(t, map[string]any{"size": 1})
	if sent := d.declare(r); len(sent) != 1 || sent[0] != "PATCH status" {
		t.Errorf("sent %v, want the status and nothing else", sent)
	}
}

// TestDeclare_FailuresHaveAClass: refusals of the API server have a class.
func TestDeclare_FailuresHaveAClass(t *testing.T) {
	d := newDeclarer(t)
	d.refuse(abi.ErrorTransient, "Invalid", "child[0 ConfigMap "+d.ns+"/Not_A_Name]: apply", d.result(configMap("Not_A_Name", "1")))
	limited := devclustertest.Limited(t, devclustertest.Shared(t), d.ns,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}})
	poor := newSession(t, limited, d.ns)
	err := poor.Declare(t.Context(), d.owner, d.result(configMap("a", "1")))
	failsAs(t, err, abi.ErrorTransient, "Forbidden", "cannot create resource")
	d.declare(d.result(configMap("a", "1")))
	if err := poor.Declare(t.Context(), d.owner, d.result(configMap("a", "1"))); err != nil {
		t.Errorf("a child that is there already needs patch only: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the run's time is over"))
	err = d.Declare(ctx, d.owner, d.result(configMap("b", "1")))
	failsAs(t, err, abi.ErrorTransient, "Cancelled", "the run's time is over")
	if err := d.Declare(t.Context(), Owner{Object: []byte{0xc1}}, d.result()); err == nil {
		t.Error("an owner that cannot be read")
	}
	if err := d.Declare(t.Context(), Owner{Object: msg(t, map[string]any{})}, d.result()); err == nil || !strings.Contains(err.Error(), "no uid") {
		t.Errorf("an owner without a uid: %v", err)
	}
}

// TestDeclare_SendsNothingThatWouldChangeNothing: a run with unchanged children costs no request.
// Any change of a child, of the list, or of the host's information costs one request each.
func TestDeclare_SendsNothingThatWouldChangeNothing(t *testing.T) {
	d := newDeclarer(t)
	r := d.result(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"))
	r.Prune = true
	r.Status = msg(t, map[string]any{"size": 1})
	expect := func(why string, want ...string) {
		t.Helper()
		got := d.declare(r)
		d.renew()
		if diff := cmp.Diff(strings.Join(want, ", "), strings.Join(got, ", ")); diff != "" {
			t.Fatalf("%s:\n%s", why, diff)
		}
	}
	patch := func(ref, change map[string]any) {
		d.ok(abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", change, "fieldManager", "theirs"))
		d.cache.refresh()
		d.renew()
	}
	expect("first", "PATCH a", "PATCH b", "PATCH c", "PATCH status")
	versions := fmt.Sprint(at(d.ok(abi.OpAPIGet, d.ref("a")), "metadata", "resourceVersion"))
	expect("steady")
	patch(d.ref("b"), map[string]any{"data": map[string]any{"k": "theirs"}})
	if e, _ := d.refuse(abi.ErrorConflict, ReasonFieldConflict, "", r); e.Index != 1 {
		t.Fatalf("conflict: %v", e)
	}
	r.Force = true
	expect("force is another request, and of b it is the first that succeeds", "PATCH a", "PATCH b", "PATCH b", "PATCH c", "PATCH status")
	expect("steady again")
	patch(d.ref("b"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": "1"}}})
	expect("somebody touched b", "PATCH b")
	expect("its resourceVersion is known now")
	d.ok(abi.OpAPIDelete, d.ref("c"))
	d.cache.refresh()
	expect("c was deleted", "PATCH c")
	patch(d.sprocketRef("owner"), map[string]any{"spec": map[string]any{"size": 7}})
	expect("the owner has changed", "PATCH status")
	r.Apply[0] = msg(t, configMap("a", "2"))
	expect("a is declared differently", "PATCH a")
	r.Apply = r.Apply[1:]
	expect("a is declared no longer", "DELETE a")
	d.Forget(abi.Key{Namespace: d.ns, Name: "owner"})
	expect("forgotten", "PATCH b", "PATCH c", "PATCH status")
	d.cache.gvrs = nil
	d.cache.refresh()
	expect("a cache without children", "PATCH b", "PATCH c")
	if now := d.ok(abi.OpAPIGet, d.ref("b")); at(now, "metadata", "resourceVersion") == versions {
		t.Error("this test changes nothing")
	}
}

// TestDeclare_ApplyThatChangesNothingKeepsTheVersion is what skipping relies on:
// the API server answers a repeated apply with the object as it was.
func TestDeclare_ApplyThatChangesNothingKeepsTheVersion(t *testing.T) {
	d := newDeclarer(t)
	deployment := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none", "ports": []any{map[string]any{"containerPort": 80}}}}},
			},
		},
	}
	r := d.result(configMap("a", "1"), deployment)
	r.Status = msg(t, map[string]any{"size": 3})
	versions := func() string {
		return fmt.Sprint(at(d.ok(abi.OpAPIGet, d.ref("a")), "metadata", "resourceVersion"), at(d.ok(abi.OpAPIGet, d.sprocketRef("owner")), "metadata", "resourceVersion"),
			at(d.ok(abi.OpAPIGet, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": d.ns, "name": "web"}), "metadata", "resourceVersion"))
	}
	d.declare(r)
	d.renew()
	before := versions()
	d.Forget(abi.Key{Namespace: d.ns, Name: "owner"})
	if sent := d.declare(r); len(sent) != 3 {
		t.Fatalf("sent %v", sent)
	}
	if now := versions(); now != before {
		t.Errorf("versions %s, were %s", now, before)
	}
}

// TestDeclare_TellsTheRunWhatWasWritten, and only that.
func TestDeclare_TellsTheRunWhatWasWritten(t *testing.T) {
	d := newDeclarer(t)
	var reported []string
	ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(w abi.Write) {
		if w.UID == "" || w.FieldManager == "" && !w.Deleted || len(w.Body) == 0 {
			t.Errorf("write: %+v", w)
		}
		reported = append(reported, fmt.Sprintf("%s %s %s %v", w.Op, w.Subresource, w.Key.Name, w.Deleted))
	}})
	r := d.result(configMap("a", "1"), configMap("b", "1"))
	r.Status, r.Prune = msg(t, map[string]any{"size": 1}), true
	step := func(want ...string) {
		t.Helper()
		reported = nil
		if err := d.Declare(ctx, d.owner, r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, reported); diff != "" {
			t.Error(diff)
		}
		d.cache.refresh()
		d.renew()
	}
	step("api_apply  a false", "api_apply  b false", "api_apply status owner false")
	r.Apply = r.Apply[:1]
	step("api_delete  b true")
	r.Status = nil
	step()
}
