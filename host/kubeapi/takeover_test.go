// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// migrating returns a module on an API server, which has the kind Sprocket.
func migrating(t *testing.T, config *rest.Config, ns string) *declarer {
	t.Helper()
	recording, sent := recorded(config)
	d := &declarer{session: newSession(t, recording, ns), sent: sent}
	d.cache = &children{t: t, admin: newClient(t, config), gvrs: []schema.GroupVersionResource{configMaps}, ns: ns}
	d.cfg.Children = d.cache
	d.owner = d.newOwner("owner")
	return d
}

// onEach runs a test on the API server in memory and on a real one.
func onEach(t *testing.T, test func(t *testing.T, d *declarer)) {
	t.Run("in memory", func(t *testing.T) {
		kind := memapi.GuessKind(schema.GroupVersionKind{Group: "kubeapi.wasmctl.dev", Version: "v1", Kind: "Sprocket"}, true)
		server := memapi.New(memapi.Config{Kinds: []memapi.Kind{kind}})
		test(t, migrating(t, &rest.Config{Host: "http://memory", Transport: server, QPS: -1}, "shop"))
	})
	t.Run("real", func(t *testing.T) {
		c := devclustertest.Shared(t)
		devclustertest.Apply(t, c, []byte(sprocketCRD))
		test(t, migrating(t, c.RESTConfig(), devclustertest.Namespace(t, c)))
	})
}

// written returns the data, the labels and the managers of a ConfigMap.
func (d *declarer) written(name string) string {
	d.t.Helper()
	o := d.ok(abi.OpAPIGet, d.ref(name))
	var managers []string
	entries, _ := at(o, "metadata", "managedFields").([]any)
	for _, e := range entries {
		managers = append(managers, fmt.Sprint(at(e, "operation"), " ", at(e, "manager")))
	}
	slices.Sort(managers)
	return fmt.Sprintf("%v %v %v", o["data"], at(o, "metadata", "labels"), managers)
}

func (d *declarer) wants(name, want string) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.written(name)); diff != "" {
		d.t.Errorf("%s: (-want +got)\n%s", name, diff)
	}
}

// old is a ConfigMap that an earlier program made with calls.
func (d *declarer) old(name, manager string, meta map[string]any) map[string]any {
	d.t.Helper()
	o := d.cm(name, map[string]any{"a": "1", "b": "2"})
	for key, value := range meta {
		o = inMeta(o, key, value)
	}
	return d.ok(abi.OpAPICreate, map[string]any{"object": inMeta(o, "labels", map[string]any{"old": "x"}), "fieldManager": manager})
}

func data(name string, values map[string]any) map[string]any {
	return with(configMap(name, ""), "data", values)
}

// TestDeclare_RemovesFieldsOfEarlierCalls: after a module has moved from calls to declared children, a
// field that it does not declare goes, whether the others stay or change, with and without force. That
// happens once: then the object has one entry, and a steady run sends nothing. A status is no conflict of
// the module with itself.
func TestDeclare_RemovesFieldsOfEarlierCalls(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		for name, tt := range map[string]struct {
			declared map[string]any
			force    bool
		}{
			"same":    {map[string]any{"a": "1"}, false},
			"changed": {map[string]any{"a": "9"}, false},
			"forced":  {map[string]any{"a": "9"}, true},
			"added":   {map[string]any{"a": "1", "c": "3"}, true},
		} {
			d.old(name, "", nil)
			r := d.result(data(name, tt.declared))
			r.Force = tt.force
			d.declare(r)
			d.wants(name, fmt.Sprintf("%v %v %v", tt.declared, nil, "[Apply wasmctl/tester]"))
			if sent := d.declare(r); len(sent) > 0 {
				t.Errorf("%s: a steady run sends %v", name, sent)
			}
		}
		ref := d.sprocketRef("owner")
		d.ok(abi.OpAPIPatch, with(ref, "subresource", "status", "patchType", "merge", "patch", map[string]any{"status": map[string]any{"size": 1, "phase": "old"}}))
		d.renew()
		d.declare(&abi.Declared{Status: msg(t, map[string]any{"size": 2})})
		if got := d.ok(abi.OpAPIGet, ref); at(got, "status", "size") != int64(2) {
			t.Errorf("status: %v", got["status"])
		}
	})
}

// TestDeclare_LeavesFieldsOfOtherCalls: fields that a module writes with calls in addition to those that
// it declares stay, and so do finalizers.
func TestDeclare_LeavesFieldsOfOtherCalls(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		d.declare(d.result(configMap("a", "1")))
		d.ok(abi.OpAPIPatch, with(d.ref("a"), "patchType", "merge", "patch", map[string]any{"data": map[string]any{"extra": "1"}}))
		for _, value := range []string{"1", "2"} {
			d.memory = memory{} // as after a restart
			d.declare(d.result(configMap("a", value)))
			d.wants("a", fmt.Sprintf("%v %v %v", map[string]any{"extra": "1", "k": value}, nil, "[Apply wasmctl/tester Update wasmctl/tester]"))
		}
		made := d.old("b", "", map[string]any{"finalizers": []any{"kubeapi.wasmctl.dev/x"}})
		d.declare(d.result(data("b", map[string]any{"a": "1"})))
		d.wants("b", fmt.Sprintf("%v %v %v", map[string]any{"a": "1"}, nil, "[Apply wasmctl/tester Update wasmctl/tester]"))
		if got := d.ok(abi.OpAPIGet, d.ref("b")); at(got, "metadata", "finalizers", 0) != "kubeapi.wasmctl.dev/x" {
			t.Errorf("finalizers: %v of %v", at(got, "metadata", "finalizers"), at(made, "metadata", "finalizers"))
		}
		d.ok(abi.OpAPIPatch, with(d.ref("b"), "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	})
}

// TestDeclare_TakesOverFromFormerManagers that the settings name, and from no others, whether these have
// updated or applied. Other owners of an object stay.
func TestDeclare_TakesOverFromFormerManagers(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		other := d.reference("other")
		other["controller"], other["blockOwnerDeletion"] = false, false
		d.old("a", "operator", map[string]any{"ownerReferences": []any{other}})
		d.ok(abi.OpAPIApply, map[string]any{"object": d.cm("b", map[string]any{"a": "1", "b": "2"}), "fieldManager": "operator"})
		d.ok(abi.OpAPIApply, map[string]any{"object": d.cm("b", map[string]any{"t": "1"}), "fieldManager": "kubectl"})
		r := d.result(data("a", map[string]any{"a": "9"}), data("b", map[string]any{"a": "9"}))
		d.refuse(abi.ErrorConflict, ReasonFieldConflict, `"operator" owns .data.a`, r)
		d.cfg.FormerManagers = []string{"operator"}
		d.declare(r)
		d.wants("a", fmt.Sprintf("%v %v %v", map[string]any{"a": "9"}, nil, "[Apply wasmctl/tester Update operator]"))
		d.wants("b", fmt.Sprintf("%v %v %v", map[string]any{"a": "9", "t": "1"}, nil, "[Apply kubectl Apply wasmctl/tester]"))
		owners, _ := at(d.ok(abi.OpAPIGet, d.ref("a")), "metadata", "ownerReferences").([]any)
		if len(owners) != 2 {
			t.Errorf("owners: %v", owners)
		}
	})
}

// TestDeclare_TakesNothingOver of an object with another controller, of fields beyond the rights of the
// module, and in a dry run.
func TestDeclare_TakesNothingOver(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		theirs := d.old("theirs", "", map[string]any{"ownerReferences": []any{d.reference("other")}})
		d.refuse(abi.ErrorConflict, ReasonFieldConflict, "", d.result(data("theirs", map[string]any{"a": "9"})))
		if got := d.ok(abi.OpAPIGet, d.ref("theirs")); at(got, "metadata", "resourceVersion") != at(theirs, "metadata", "resourceVersion") {
			t.Errorf("it was changed: %v", got)
		}
		d.old("a", "", nil)
		dry := &declarer{session: &session{API: d.WithDryRun(DryRunServer), t: t, ns: d.ns}, cache: d.cache, owner: d.owner, sent: d.sent}
		dry.declare(d.result(data("a", map[string]any{"a": "9"})))
		d.wants("a", fmt.Sprintf("%v %v %v", map[string]any{"a": "1", "b": "2"}, map[string]any{"old": "x"}, "[Update wasmctl/tester]"))
		limited := &declarer{session: d.limited("configmaps", "data.a"), cache: d.cache, owner: d.owner, sent: d.sent}
		limited.declare(d.result(data("a", map[string]any{"a": "1"})))
		d.wants("a", fmt.Sprintf("%v %v %v", map[string]any{"a": "1", "b": "2"}, map[string]any{"old": "x"}, "[Apply wasmctl/tester Update wasmctl/tester]"))
		limited = &declarer{session: d.limited("configmaps", "data", "metadata.labels"), cache: d.cache, owner: d.owner, sent: d.sent}
		limited.memory = memory{}
		limited.declare(d.result(data("a", map[string]any{"a": "9"})))
		d.wants("a", fmt.Sprintf("%v %v %v", map[string]any{"a": "9"}, nil, "[Apply wasmctl/tester]"))
	})
}

// TestDeclare_TakesOverWithTheRightToApply and no other.
func TestDeclare_TakesOverWithTheRightToApply(t *testing.T) {
	admin := newDeclarer(t)
	admin.old("a", "", nil)
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}}
	client := newClient(t, devclustertest.Limited(t, devclustertest.Shared(t), admin.ns, rule))
	d := &declarer{session: &session{API: admin.WithObserver(nil), t: t, ns: admin.ns}, cache: admin.cache, owner: admin.owner, sent: admin.sent}
	d.cfg.Client = client
	var seen []string
	d.API = d.WithObserver(func(_ context.Context, e *Exchange) { seen = append(seen, strings.Join(e.TakenFrom, " ")) })
	d.declare(d.result(data("a", map[string]any{"a": "9"})))
	admin.wants("a", fmt.Sprintf("%v %v %v", map[string]any{"a": "9"}, nil, "[Apply wasmctl/tester]"))
	if !slices.Contains(seen, "wasmctl/tester") {
		t.Errorf("the observer has seen no takeover: %q", seen)
	}
}
