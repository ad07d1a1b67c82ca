// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "testing"

func owned(t *testing.T, namespace string, refs ...any) Object {
	t.Helper()
	return testObject(t, Map{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": Map{"name": "c", "namespace": namespace, "ownerReferences": refs, "labels": Map{"a": "b"}}, "data": Map{"x": "y"},
	})
}

// TestSetController_KeepsOtherOwnersAndTheRest tests rule 24 (one controller).
func TestSetController_KeepsOtherOwnersAndTheRest(t *testing.T) {
	owner := testObject(t, Map{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": Map{"name": "web", "namespace": "shop", "uid": "u1"}})
	other := OwnerReference{APIVersion: "v1", Kind: "Other", Name: "o", UID: "u9"}
	o := owned(t, "shop", other)
	for range 2 { // the second iteration changes nothing
		equal(t, o.SetController(owner), nil)
		equal(t, o.OwnerReferences(), []OwnerReference{other, owner.ControllerRef()})
	}
	equal(t, []string{o.Label("a"), o.String("data", "x")}, []string{"b", "y"})
	equal(t, o.SetOwner(owner), nil) // an owner, but no longer the controller
	_, ok := o.Controller()
	equal(t, []any{ok, len(o.OwnerReferences())}, []any{false, 2})
}

func TestSetController_RefusesASecondControllerAndAnotherNamespace(t *testing.T) {
	owner := testObject(t, Map{"apiVersion": "v1", "kind": "Pod", "metadata": Map{"name": "p", "namespace": "shop", "uid": "u1"}})
	theirs := OwnerReference{APIVersion: "v1", Kind: "Other", Name: "o", UID: "u9", Controller: true}
	cluster := testObject(t, Map{"apiVersion": "v1", "kind": "Node", "metadata": Map{"name": "n", "uid": "u2"}})
	cases := []struct {
		object Object
		owner  Object
		reason string
	}{
		{owned(t, "shop", theirs), owner, "NotOwned"},
		{owned(t, "other"), owner, "CrossNamespaceOwner"},
		{testObject(t, Map{"kind": "Node", "metadata": Map{"name": "n"}}), owner, "CrossNamespaceOwner"},
		{owned(t, "shop"), cluster, ""},
	}
	for _, c := range cases {
		before := string(c.object.Raw())
		err := c.object.SetController(c.owner)
		if c.reason == "" {
			equal(t, []any{err, c.object.IsControlledBy(c.owner)}, []any{nil, true})
			continue
		}
		q := classify(err)
		equal(t, []any{q.class, q.reason, string(c.object.Raw())}, []any{ErrorPermanent, c.reason, before})
	}
}
