// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"reflect"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var (
	ref    = wasmctl.ObjectRef{APIVersion: "example.com/v1", Kind: "Greeting", Namespace: "default", Name: "hello"}
	cmRef  = wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello"}
	action = wasmctl.AwaitChange()
)

func greeting() wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": "example.com/v1", "kind": "Greeting",
		"metadata": wasmctl.Map{"name": "hello", "namespace": "default"}, "spec": wasmctl.Map{"text": "hi"},
	}
}

func configMap(data wasmctl.Map) wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": wasmctl.Map{"name": "hello", "namespace": "default"}, "data": data,
	}
}

// with runs f as the Reconcile function of a module with all rights.
func with(t *testing.T, host *guesttest.Host, f func(ctx *wasmctl.Context, c *wasmctl.Client)) guesttest.Result {
	t.Helper()
	ran := false
	r := wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{
			Name: "greeter", Config: map[string]string{"a": "default", "b": "default"},
			Capabilities: []wasmctl.Capability{
				{Resource: "configmaps", Verbs: []string{"*"}},
				{Resource: "namespaces", Verbs: []string{"get", "create"}},
				{Group: "example.com", Resource: "greetings", Verbs: []string{"*"}},
				{Group: "example.com", Resource: "greetings", Subresources: []string{"status"}, Verbs: []string{"patch", "update"}},
			},
		},
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			ran = true
			f(ctx, ctx.Client())
			return action, nil
		},
	}
	result := host.Reconcile(r, ref)
	if !ran {
		t.Error("Reconcile was not called")
	}
	return result
}

func status(err error) int {
	if err == nil {
		return 0
	}
	e, ok := err.(*wasmctl.Error) //nolint:errorlint // the client returns it bare
	if !ok {
		return 1
	}
	return e.Status
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestHost_CreateGetUpdateDelete(t *testing.T) {
	host := guesttest.New(t, greeting())
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		_, err := c.Get(cmRef, wasmctl.GetOptions{})
		equal(t, wasmctl.IsNotFound(err), true)

		made, err := c.Create(configMap(wasmctl.Map{"a": "1"}), wasmctl.WriteOptions{})
		equal(t, status(err), 0)
		equal(t, made.UID() != "" && made.ResourceVersion() != "" && made.Generation() == 1, true)
		_, err = c.Create(configMap(nil), wasmctl.WriteOptions{})
		equal(t, wasmctl.IsAlreadyExists(err), true)

		same, err := c.Update(made, wasmctl.WriteOptions{})
		equal(t, []any{same.ResourceVersion(), status(err)}, []any{made.ResourceVersion(), 0})

		changed, err := c.Update(configMap(wasmctl.Map{"a": "2"}), wasmctl.WriteOptions{})
		equal(t, []any{changed.Generation(), changed.UID(), status(err)}, []any{int64(2), made.UID(), 0})
		equal(t, changed.ResourceVersion() != made.ResourceVersion(), true)
		_, err = c.Update(made, wasmctl.WriteOptions{})
		equal(t, wasmctl.IsConflict(err), true)

		err = c.Delete(cmRef, wasmctl.DeleteOptions{Preconditions: wasmctl.Preconditions{UID: "other"}})
		equal(t, wasmctl.IsConflict(err), true)
		equal(t, status(c.Delete(cmRef, wasmctl.DeleteOptions{DryRun: true})), 0)
		equal(t, status(c.Delete(cmRef, wasmctl.DeleteOptions{})), 0)
		equal(t, wasmctl.IsNotFound(c.Delete(cmRef, wasmctl.DeleteOptions{})), true)
	})
	equal(t, host.Get(cmRef).Exists(), false)
	var changes []string
	for _, c := range host.Changes() {
		changes = append(changes, c.Op)
	}
	equal(t, changes, []string{"api_create", "api_update", "api_delete"})
}

func TestHost_RequestsThatAHostRefuses(t *testing.T) {
	host := guesttest.New(t, greeting())
	noNamespace, bare := cmRef, cmRef
	noNamespace.Namespace, bare.Name = "", ""
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		bad := map[string]int{}
		try := func(what string, _ wasmctl.Object, err error) { bad[what] = status(err) }
		get := func(what string, ref wasmctl.ObjectRef, opts wasmctl.GetOptions) {
			o, err := c.Get(ref, opts)
			try(what, o, err)
		}
		get("no namespace", noNamespace, wasmctl.GetOptions{})
		get("no name", bare, wasmctl.GetOptions{})
		get("namespaced namespace", wasmctl.ObjectRef{APIVersion: "v1", Kind: "Namespace", Namespace: "x", Name: "x"}, wasmctl.GetOptions{})
		get("denied", wasmctl.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: "x", Name: "x"}, wasmctl.GetOptions{})
		get("denied subresource", ref, wasmctl.GetOptions{Subresource: "status"})
		get("scale", cmRef, wasmctl.GetOptions{Subresource: "scale"})
		o, err := c.Create(wasmctl.Map{"kind": "ConfigMap"}, wasmctl.WriteOptions{})
		try("no apiVersion", o, err)
		o, err = c.Patch(cmRef, wasmctl.StrategicPatch(wasmctl.Map{}), wasmctl.WriteOptions{})
		try("absent", o, err)
		o, err = c.Patch(ref, wasmctl.StrategicPatch(wasmctl.Map{}), wasmctl.WriteOptions{})
		try("strategic", o, err)
		o, err = c.Update(greeting(), wasmctl.WriteOptions{})
		try("custom resource without a resourceVersion", o, err)
		equal(t, bad, map[string]int{
			"no namespace": -3, "no name": -3, "namespaced namespace": -3, "denied": -2, "denied subresource": -2, "scale": -1,
			"no apiVersion": -3, "absent": 404, "strategic": -1, "custom resource without a resourceVersion": 422,
		})
	})
	equal(t, len(host.Changes()), 0)
}

func TestHost_DeniedSaysWhichCapabilityIsMissing(t *testing.T) {
	host := guesttest.New(t, greeting())
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		err := c.Delete(wasmctl.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "x", Name: "y"}, wasmctl.DeleteOptions{})
		e, ok := err.(*wasmctl.Error) //nolint:errorlint // the client returns it bare
		if !ok || e.Rule == nil {
			t.Fatalf("got %v", err)
		}
		equal(t, *e.Rule, wasmctl.Capability{Group: "apps", Resource: "deployments", Verbs: []string{"delete"}, Namespaces: []string{"x"}})
	})
}

func TestHost_StatusIsASubresource(t *testing.T) {
	host := guesttest.New(t, greeting())
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		o, err := c.PatchStatus(ref, wasmctl.MergePatch(wasmctl.Map{"status": wasmctl.Map{"n": 1}, "spec": wasmctl.Map{"text": "no"}}), wasmctl.WriteOptions{})
		equal(t, []any{o.Int("status", "n"), o.String("spec", "text"), o.Generation(), status(err)}, []any{int64(1), "hi", int64(1), 0})
		o, err = c.Patch(ref, wasmctl.MergePatch(wasmctl.Map{"status": wasmctl.Map{"n": 2}, "spec": wasmctl.Map{"text": "yes"}}), wasmctl.WriteOptions{})
		equal(t, []any{o.Int("status", "n"), o.String("spec", "text"), o.Generation(), status(err)}, []any{int64(1), "yes", int64(2), 0})
		o, err = c.ApplyStatus(wasmctl.Map{
			"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": wasmctl.Map{"name": "hello", "namespace": "default"},
			"status": wasmctl.Map{"m": 3},
		}, wasmctl.ApplyOptions{})
		equal(t, []any{o.Int("status", "n"), o.Int("status", "m"), o.String("spec", "text"), status(err)}, []any{int64(1), int64(3), "yes", 0})
	})
}

func TestHost_PatchesFollowTheirRFCs(t *testing.T) {
	cases := []struct {
		patch wasmctl.Patch
		want  wasmctl.Map // nil if the patch is refused
	}{
		{wasmctl.MergePatch(wasmctl.Map{"data": wasmctl.Map{"a": nil, "c": "3"}}), wasmctl.Map{"b": "2", "c": "3"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "test", Path: "/data/a", Value: "1"}, wasmctl.PatchOp{Op: "remove", Path: "/data/a"}), wasmctl.Map{"b": "2"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "remove", Path: "/data/b"}, wasmctl.PatchOp{Op: "test", Path: "/data/a", Value: "2"}), nil},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "add", Path: "/data/x~1y~0z", Value: "3"}), wasmctl.Map{"a": "1", "b": "2", "x/y~z": "3"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "move", From: "/data/a", Path: "/data/c"}), wasmctl.Map{"b": "2", "c": "1"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "copy", From: "/data/a", Path: "/data/c"}), wasmctl.Map{"a": "1", "b": "2", "c": "1"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "replace", Path: "/data/none", Value: "3"}), nil},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "replace", Path: "/metadata/name", Value: "other"}), nil},
		{wasmctl.JSONPatch(
			wasmctl.PatchOp{Op: "add", Path: "/data/l", Value: []any{"x"}}, wasmctl.PatchOp{Op: "add", Path: "/data/l/0", Value: "w"},
			wasmctl.PatchOp{Op: "add", Path: "/data/l/-", Value: "y"}, wasmctl.PatchOp{Op: "remove", Path: "/data/l/1"},
		), wasmctl.Map{"a": "1", "b": "2", "l": []any{"w", "y"}}},
	}
	for i, c := range cases {
		host := guesttest.New(t, greeting(), configMap(wasmctl.Map{"a": "1", "b": "2"}))
		before := host.Get(cmRef)
		with(t, host, func(_ *wasmctl.Context, client *wasmctl.Client) {
			_, err := client.Patch(cmRef, c.patch, wasmctl.WriteOptions{})
			equal(t, err != nil, c.want == nil)
		})
		if c.want == nil {
			equal(t, string(host.Get(cmRef).Raw()), string(before.Raw()))
			continue
		}
		var data wasmctl.Map
		if err := host.Get(cmRef).Decode(&data, "data"); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(data, c.want) {
			t.Errorf("case %d: got %v, want %v", i, data, c.want)
		}
	}
}

func TestHost_ApplyOwnsFields(t *testing.T) {
	host := guesttest.New(t, greeting())
	as := func(manager string, force bool) wasmctl.ApplyOptions {
		return wasmctl.ApplyOptions{WriteOptions: wasmctl.WriteOptions{FieldManager: manager}, Force: force}
	}
	data := func() map[string]string { return host.Get(cmRef).StringMap("data") }
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		apply := func(m wasmctl.Map, opts wasmctl.ApplyOptions) int {
			_, err := c.Apply(configMap(m), opts)
			return status(err)
		}
		equal(t, apply(wasmctl.Map{"a": "1", "b": "1"}, as("one", false)), 0)
		version := host.Get(cmRef).ResourceVersion()
		equal(t, apply(wasmctl.Map{"a": "1", "b": "1"}, as("one", false)), 0)
		equal(t, host.Get(cmRef).ResourceVersion(), version) // nothing changed

		equal(t, apply(wasmctl.Map{"b": "1", "c": "2"}, as("two", false)), 0) // shares b
		equal(t, apply(wasmctl.Map{"a": "1"}, as("one", false)), 0)
		equal(t, data(), map[string]string{"a": "1", "b": "1", "c": "2"}) // two still wants b
		equal(t, apply(wasmctl.Map{"c": "2"}, as("two", false)), 0)
		equal(t, data(), map[string]string{"a": "1", "c": "2"})

		equal(t, apply(wasmctl.Map{"a": "9"}, as("two", false)), 409)
		equal(t, data(), map[string]string{"a": "1", "c": "2"})
		equal(t, apply(wasmctl.Map{"a": "9"}, as("two", true)), 0)
		equal(t, data(), map[string]string{"a": "9"})
		equal(t, apply(wasmctl.Map{"a": "1"}, as("one", false)), 409) // it is two's now
	})
}

func TestHost_ApplyMergesKeyedLists(t *testing.T) {
	owner := func(uid string, controller bool) wasmctl.Map {
		return wasmctl.Map{"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid, "controller": controller}
	}
	with1 := func(refs ...any) wasmctl.Map {
		cm := configMap(nil)
		cm["metadata"].(map[string]any)["ownerReferences"] = refs
		return cm
	}
	host := guesttest.New(t, greeting(), with1(owner("first", false)))
	names := func() (list []string) {
		for _, r := range host.Get(cmRef).OwnerReferences() {
			list = append(list, r.UID)
		}
		return list
	}
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		apply := func(o wasmctl.Map) int {
			_, err := c.Apply(o, wasmctl.ApplyOptions{Force: true})
			return status(err)
		}
		equal(t, apply(with1(owner("second", true))), 0)
		equal(t, names(), []string{"first", "second"})
		equal(t, apply(with1(owner("second", true), owner("third", true))), 422) // two controllers
		equal(t, names(), []string{"first", "second"})
		equal(t, apply(configMap(nil)), 0) // leaves its own out
		equal(t, names(), []string{"first"})
	})
}

func TestHost_FinalizersHoldADeletedObject(t *testing.T) {
	held := configMap(nil)
	held["metadata"].(map[string]any)["finalizers"] = []any{"example.com/hold"}
	host := guesttest.New(t, greeting(), held)
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		equal(t, status(c.Delete(cmRef, wasmctl.DeleteOptions{})), 0)
		equal(t, host.Get(cmRef).IsDeleting(), true)
		_, err := c.Patch(cmRef, wasmctl.MergePatch(wasmctl.Map{"metadata": wasmctl.Map{"finalizers": nil}}), wasmctl.WriteOptions{})
		equal(t, status(err), 0)
	})
	equal(t, host.Get(cmRef).Exists(), false)
}

func TestHost_ListSelectsAndPages(t *testing.T) {
	host := guesttest.New(t, greeting())
	for _, name := range []string{"c", "a", "b", "d"} {
		cm := configMap(nil)
		cm["metadata"] = wasmctl.Map{"name": name, "namespace": "default", "labels": wasmctl.Map{"app": "x", "odd": name}}
		host.Add(cm)
	}
	all := wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}
	names := func(l wasmctl.List) (s string) {
		for _, o := range l.Items() {
			s += o.Name()
		}
		return s
	}
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		selected := map[string]string{}
		for _, sel := range []string{"", "app=x", "app==y", "odd!=a", "!odd", "odd,odd!=b", "odd in (a, c),app", "odd notin (a,c)", "none notin (a)"} {
			l, err := c.List(all, wasmctl.ListOptions{LabelSelector: sel})
			equal(t, status(err), 0)
			selected[sel] = names(l)
		}
		equal(t, selected, map[string]string{
			"": "abcd", "app=x": "abcd", "app==y": "", "odd!=a": "bcd", "!odd": "", "odd,odd!=b": "acd",
			"odd in (a, c),app": "ac", "odd notin (a,c)": "bd", "none notin (a)": "abcd",
		})
		_, err := c.List(all, wasmctl.ListOptions{LabelSelector: "app like (x)"})
		equal(t, status(err), wasmctl.StatusBadRequest)
		byName, err := c.List(all, wasmctl.ListOptions{FieldSelector: "metadata.name=b"})
		equal(t, []any{names(byName), status(err)}, []any{"b", 0})

		page, err := c.List(all, wasmctl.ListOptions{Limit: 3})
		equal(t, []any{names(page), page.Len(), page.Continue() != "", status(err)}, []any{"abc", 3, true, 0})
		page, err = c.List(all, wasmctl.ListOptions{Limit: 3, Continue: page.Continue()})
		equal(t, []any{names(page), page.Continue(), status(err)}, []any{"d", "", 0})
	})
}

func TestHost_DryRunChangesNothing(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.DryRun = true
	with(t, host, func(ctx *wasmctl.Context, c *wasmctl.Client) {
		equal(t, ctx.DryRun(), true)
		o, err := c.Apply(configMap(wasmctl.Map{"a": "1"}), wasmctl.ApplyOptions{})
		equal(t, []any{o.String("data", "a"), status(err)}, []any{"1", 0})
		_, err = c.Patch(ref, wasmctl.MergePatch(wasmctl.Map{"spec": wasmctl.Map{"text": "x"}}), wasmctl.WriteOptions{})
		equal(t, status(err), 0)
	})
	equal(t, []any{host.Get(cmRef).Exists(), host.Get(ref).String("spec", "text"), len(host.Changes())}, []any{false, "hi", 0})
}
