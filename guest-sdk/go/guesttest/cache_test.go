// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

// reading runs f as a module that watches ConfigMaps and the metadata of
// Secrets, and may only read them and record events.
func reading(t *testing.T, host *guesttest.Host, f func(ctx *wasmctl.Context, c *wasmctl.Cache)) {
	t.Helper()
	result := host.Reconcile(wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{
			For: &wasmctl.Watch{Group: "example.com", Kind: "Greeting"},
			Watches: []wasmctl.Watch{
				{Kind: "ConfigMap", Map: "owner", LabelSelector: "app"},
				{Kind: "Secret", Map: "owner", MetadataOnly: true},
				{Kind: "Service", Map: "owner"},
			},
			Capabilities: []wasmctl.Capability{
				{Resource: "configmaps", Verbs: []string{"get", "list"}},
				{Resource: "secrets", Verbs: []string{"get"}},
				{Resource: "pods", Verbs: []string{"get"}},
				{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
			},
		},
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			f(ctx, ctx.Cache())
			return action, nil
		},
	}, ref)
	if result.Failure != nil {
		t.Error(result.Failure)
	}
}

func labelled(namespace, name, app string) wasmctl.Map {
	cm := configMap(nil)
	cm["metadata"] = wasmctl.Map{"name": name, "namespace": namespace, "labels": wasmctl.Map{"app": app}}
	return cm
}

func TestCache_HasWhatIsWatchedAndNothingElse(t *testing.T) {
	unlabelled := configMap(nil)
	unlabelled["metadata"] = wasmctl.Map{"name": "plain", "namespace": "default"}
	secret := wasmctl.Map{
		"apiVersion": "v1", "kind": "Secret", "metadata": wasmctl.Map{"name": "s", "namespace": "default"}, "data": wasmctl.Map{"a": "eA=="},
	}
	host := guesttest.New(t, greeting(), labelled("default", "a", "x"), unlabelled, secret)
	host.NotSynced("Greeting")
	reading(t, host, func(ctx *wasmctl.Context, c *wasmctl.Cache) {
		equal(t, []bool{ctx.HostHas("cache_get"), ctx.HostHas("declare")}, []bool{true, true})
		a, err := c.Get(cmNamed("a"))
		equal(t, []any{a.Label("app"), err}, []any{"x", nil})
		_, err = c.Get(cmNamed("plain"))
		equal(t, wasmctl.IsNotFound(err), true)
		s, err := c.Get(wasmctl.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "s"})
		equal(t, []any{s.Name(), s.Exists("data"), err}, []any{"s", false, nil})
		_, err = c.Get(ref)
		equal(t, wasmctl.IsNotSynced(err), true)
		_, err = c.Get(wasmctl.ObjectRef{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "a"})
		equal(t, wasmctl.IsDenied(err), true)
		_, err = c.Get(wasmctl.ObjectRef{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "a"})
		e, ok := wasmctl.AsError(err)
		if !ok || e.Status != wasmctl.StatusBadRequest || !strings.Contains(e.Message, "Manifest.Watches") {
			t.Errorf("not watched: %v", err)
		}
	})
	host.Synced("Greeting")
	reading(t, host, func(_ *wasmctl.Context, c *wasmctl.Cache) {
		_, err := c.Get(ref)
		equal(t, err, nil)
	})
}

// TestCache_SelectsByOwnerAndField as the host does.
func TestCache_SelectsByOwnerAndField(t *testing.T) {
	host := guesttest.New(t, greeting())
	for i, owner := range []string{"u1", "u2", "u1"} {
		host.Add(wasmctl.Map{
			"apiVersion": "v1", "kind": "ConfigMap", "data": wasmctl.Map{"n": strconv.Itoa(i)}, "immutable": i == 2,
			"metadata": wasmctl.Map{"name": fmt.Sprintf("n%d", i), "namespace": "default", "labels": wasmctl.Map{"app": "x"}, "ownerReferences": []any{wasmctl.Map{"uid": owner}}},
		})
	}
	reading(t, host, func(_ *wasmctl.Context, c *wasmctl.Cache) {
		for opts, want := range map[wasmctl.CacheListOptions]string{
			{Owner: "u1"}: "n0 n2", {Owner: "u1", FieldSelector: "data.n!=0"}: "n2", {FieldSelector: "immutable=true,metadata.name=n2"}: "n2", {Owner: "none"}: "",
		} {
			var names []string
			for o, err := range c.All(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}, opts) {
				equal(t, err, nil)
				names = append(names, o.Name())
			}
			equal(t, strings.Join(names, " "), want)
		}
	})
}

// TestCache_AnIndexLeavesOutWhatItWasTold: an object is listed until the host
// knows that its current version lacks the value.
func TestCache_AnIndexLeavesOutWhatItWasTold(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.Add(labelled("default", "a", "x"), labelled("default", "b", "y"))
	byApp := wasmctl.NewIndex("app")
	reading(t, host, func(_ *wasmctl.Context, c *wasmctl.Cache) {
		list := func(value string) (names []string) {
			for o, err := range c.All(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}, wasmctl.CacheListOptions{Index: byApp, Value: value}) {
				equal(t, err, nil)
				names = append(names, o.Name())
				if app := o.String("metadata", "labels", "app"); app != value {
					byApp.Tell(o, []string{app})
				}
			}
			return names
		}
		equal(t, list("x"), []string{"a", "b"}) // the index is empty
		equal(t, list("x"), []string{"a"})
		equal(t, list("y"), []string{"a", "b"}) // a was not reported, because it has the value
		equal(t, list("y"), []string{"b"})
		host.Add(labelled("default", "b", "x"))
		equal(t, list("x"), []string{"a", "b"})
		equal(t, list("y"), []string{"b"})
		equal(t, list("y"), []string(nil))
	})
}

// TestCache_PagesStayGoodOverChanges: a page starts after the last object of
// the previous page, in the order of namespace and name, even if objects were
// added or removed.
func TestCache_PagesStayGoodOverChanges(t *testing.T) {
	host := guesttest.New(t, greeting())
	for i := range 5 {
		host.Add(labelled("default", fmt.Sprintf("n%d", i), "x"), labelled("a-ns", fmt.Sprintf("n%d", i), "y"))
	}
	reading(t, host, func(_ *wasmctl.Context, c *wasmctl.Cache) {
		all := wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}
		var names []string
		opts := wasmctl.CacheListOptions{Limit: 3}
		for {
			page, err := c.List(all, opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Items() {
				names = append(names, o.Key().String())
			}
			if opts.Continue = page.Continue(); opts.Continue == "" {
				break
			}
			host.Remove(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a-ns", Name: "n2"})
			host.Add(labelled("a-ns", "n0-before", "x"), labelled("zz", "late", "x"))
		}
		equal(t, names, []string{
			"a-ns/n0", "a-ns/n1", "a-ns/n2", "a-ns/n3", "a-ns/n4", "default/n0", "default/n1", "default/n2", "default/n3", "default/n4", "zz/late",
		})
		all.Namespace = "default"
		walked := 0
		for o, err := range c.All(all, wasmctl.CacheListOptions{LabelSelector: "app in (x, z)", Limit: 2}) {
			equal(t, []any{err, o.Namespace()}, []any{nil, "default"})
			walked++
		}
		equal(t, walked, 5)
		for _, err := range c.All(all, wasmctl.CacheListOptions{Continue: "nonsense"}) {
			equal(t, err != nil, true)
			walked++
		}
		equal(t, walked, 6)
	})
}

func TestClient_AllWalksThePages(t *testing.T) {
	host := guesttest.New(t, greeting())
	for i := range 7 {
		host.Add(labelled("default", fmt.Sprintf("n%d", i), "x"))
	}
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		names := ""
		for o, err := range c.All(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}, wasmctl.ListOptions{Limit: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			if names += o.Name(); o.Name() == "n4" {
				break
			}
		}
		equal(t, names, "n0n1n2n3n4")
		host.FailNext("api_list", wasmctl.Error{Status: 410, Reason: "Expired"})
		n := 0
		for o, err := range c.All(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}, wasmctl.ListOptions{}) {
			equal(t, []bool{o.Exists(), wasmctl.IsGone(err)}, []bool{false, true})
			n++
		}
		equal(t, []any{n, len(host.Calls())}, []any{1, 3})
	})
}

func TestEvents_AreRecordedAboutTheObject(t *testing.T) {
	host := guesttest.New(t, greeting())
	reading(t, host, func(ctx *wasmctl.Context, _ *wasmctl.Cache) {
		ctx.Event(wasmctl.EventWarning, "Odd", strings.Repeat("x", 2000))
		ctx.Event("", "", "no reason") // refused: it is logged and the run goes on
		equal(t, ctx.RecordEvent(wasmctl.Event{Reason: "Made", Related: &wasmctl.EventObject{ObjectRef: cmRef}}), nil)
		if err := ctx.RecordEvent(wasmctl.Event{Type: "Loud", Reason: "x"}); err == nil {
			t.Error("an unknown type was recorded")
		}
	})
	events := host.Events()
	equal(t, len(events), 2)
	equal(t, []any{events[0].Regarding.ObjectRef, events[0].Regarding.UID, events[0].Type, len(events[0].Note)},
		[]any{ref, host.Get(ref).UID(), wasmctl.EventWarning, 1024})
	equal(t, []any{events[1].Type, events[1].Related.ObjectRef}, []any{wasmctl.EventNormal, cmRef})
	equal(t, len(host.Log()), 1)
}
