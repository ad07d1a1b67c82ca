// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"errors"
	"strings"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

// declaring is a module that owns ConfigMaps and returns the result of f.
func declaring(f func(obj wasmctl.Object) (wasmctl.Action, error)) wasmctl.Reconciler {
	return wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{
			Name: "greeter", For: &wasmctl.Watch{Group: "example.com", Kind: "Greeting"}, Owns: []wasmctl.Watch{{Kind: "ConfigMap"}},
			Capabilities: []wasmctl.Capability{{Resource: "configmaps", Verbs: []string{"create", "patch", "delete"}}},
		},
		Reconcile: func(_ *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) { return f(obj) },
	}
}

func child(name string) *wasmctl.Builder {
	return wasmctl.BuildObject(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: name}).End().Map("data").Set("text", "of "+name)
}

func cmNamed(name string) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}
}

func TestDeclare_ChildrenAreAppliedOwnedAndPruned(t *testing.T) {
	names := []string{"a", "b"}
	r := declaring(func(wasmctl.Object) (wasmctl.Action, error) {
		action := wasmctl.AwaitChange().Prune().Status(wasmctl.Map{"children": len(names)})
		for _, n := range names {
			action = action.Apply(child(n))
		}
		return action, nil
	})
	foreign := configMap(nil)
	foreign["metadata"] = wasmctl.Map{"name": "foreign", "namespace": "default"}
	host := guesttest.New(t, greeting(), foreign)

	equal(t, host.Reconcile(r, ref), guesttest.Result{Action: action})
	owner := host.Get(ref)
	for _, n := range names {
		cm := host.Get(cmNamed(n))
		equal(t, []any{cm.IsControlledBy(owner), cm.String("data", "text")}, []any{true, "of " + n})
	}
	equal(t, owner.Int("status", "children"), int64(2))

	before := len(host.Changes())
	host.Reconcile(r, ref)
	equal(t, len(host.Changes()), before)

	names = []string{"b"}
	host.Reconcile(r, ref)
	equal(t, []bool{host.Get(cmNamed("a")).Exists(), host.Get(cmNamed("b")).Exists(), host.Get(cmNamed("foreign")).Exists()},
		[]bool{false, true, true})
}

func TestDeclare_RefusesWhatAHostRefusesBeforeAnythingIsWritten(t *testing.T) {
	cluster := wasmctl.Map{"apiVersion": "v1", "kind": "Namespace", "metadata": wasmctl.Map{"name": "x"}}
	elsewhere := configMap(nil)
	elsewhere["metadata"] = wasmctl.Map{"name": "x", "namespace": "other"}
	cases := map[string]wasmctl.Action{
		"InvalidChild 1": wasmctl.Apply(child("a"), child("a")),
		"InvalidChild 2": wasmctl.Apply(child("a"), cluster),
		"InvalidChild 3": wasmctl.Apply(child("a"), elsewhere),
		"InvalidChild 4": wasmctl.Apply(child("a"), greeting()),
		"InvalidChild 5": wasmctl.Apply(child("a"), wasmctl.Map{"kind": "ConfigMap"}),
		"InvalidChild 7": wasmctl.Apply(child("a"), wasmctl.Map{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": wasmctl.Map{"name": "x", "ownerReferences": []any{
				wasmctl.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "boss", UID: "1", Controller: true},
			}},
		}),
		"InvalidChild 6": wasmctl.Apply(child("a"), "text"),
		"Denied":         wasmctl.Apply(child("a"), wasmctl.Map{"apiVersion": "v1", "kind": "Secret", "metadata": wasmctl.Map{"name": "x"}}),
	}
	for name, action := range cases {
		host := guesttest.New(t, greeting())
		f := host.Reconcile(declaring(func(wasmctl.Object) (wasmctl.Action, error) { return action, nil }), ref).Failure
		if f == nil || f.Class != wasmctl.ErrorPermanent || f.Reason == "" || !strings.HasPrefix(name, f.Reason) || len(host.Changes()) != 0 {
			t.Errorf("%s: got %+v after %v", name, f, host.Changes())
		}
	}
}

func TestDeclare_PartialFailureKeepsWhatWasApplied(t *testing.T) {
	theirs := configMap(nil)
	theirs["metadata"] = wasmctl.Map{
		"name": "b", "namespace": "default",
		"ownerReferences": []any{wasmctl.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "boss", UID: "1", Controller: true}},
	}
	host := guesttest.New(t, greeting(), theirs)
	policy := 0
	r := declaring(func(wasmctl.Object) (wasmctl.Action, error) {
		return wasmctl.Apply(child("a"), child("b"), child("c")).Status(wasmctl.Map{"ok": true}), nil
	})
	r.ErrorPolicy = func(_ *wasmctl.Context, _ wasmctl.Object, f wasmctl.Failure) wasmctl.Action {
		policy++
		equal(t, []any{f.Class, f.Reason, f.Attempt}, []any{wasmctl.ErrorConflict, "ForeignController", 1})
		return wasmctl.AwaitChange()
	}
	host.Reconcile(r, ref)
	equal(t, []any{host.Get(cmNamed("a")).Exists(), host.Get(cmNamed("c")).Exists(), host.Get(ref).Exists("status"), policy},
		[]any{true, false, false, 1})
}

func TestDeclare_StatusCountsBesideAnError(t *testing.T) {
	host := guesttest.New(t, greeting())
	result := host.Reconcile(declaring(func(wasmctl.Object) (wasmctl.Action, error) {
		return wasmctl.Apply(child("a")).Status(wasmctl.Map{"ok": false}), errors.New("boom")
	}), ref)
	equal(t, []any{result.Failure.Message, host.Get(ref).Exists("status", "ok"), host.Get(cmNamed("a")).Exists()}, []any{"boom", true, false})
}

func TestDeclare_ForceTakesFieldsOver(t *testing.T) {
	for _, force := range []bool{false, true} {
		host := guesttest.New(t, greeting())
		with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
			_, err := c.Apply(configMap(wasmctl.Map{"text": "other"}), wasmctl.ApplyOptions{WriteOptions: wasmctl.WriteOptions{FieldManager: "kubectl"}})
			equal(t, status(err), 0)
		})
		result := host.Reconcile(declaring(func(wasmctl.Object) (wasmctl.Action, error) {
			action := wasmctl.Apply(child("hello"))
			if force {
				action = action.Force()
			}
			return action, nil
		}), ref)
		if force != (result.Failure == nil) || !force && (result.Failure.Reason != "FieldConflict" || !strings.Contains(result.Failure.Message, "kubectl")) {
			t.Errorf("force %v: got %+v", force, result.Failure)
		}
	}
}

func TestDeclare_DryRunWritesNothing(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.DryRun = true
	result := host.Reconcile(declaring(func(wasmctl.Object) (wasmctl.Action, error) {
		return wasmctl.Apply(child("a")).Prune().Status(wasmctl.Map{"ok": true}), nil
	}), ref)
	equal(t, []any{result.Failure == nil, len(host.Changes()), host.Get(ref).Exists("status")}, []any{true, 0, false})
}
