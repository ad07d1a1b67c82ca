// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"errors"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

const finalizer = "example.com/cleanup"

// TestFinalizer_IsAddedCleanedUpAndRemoved tests rule 21.
func TestFinalizer_IsAddedCleanedUpAndRemoved(t *testing.T) {
	var calls []string
	var failing error
	next := wasmctl.AwaitChange()
	r := declaring(func(obj wasmctl.Object) (wasmctl.Action, error) {
		equal(t, obj.Strings("metadata", "finalizers"), []string{finalizer})
		calls = append(calls, "reconcile")
		return wasmctl.AwaitChange(), nil
	})
	r.Manifest.Finalizer = finalizer
	r.Finalize = func(_ *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
		equal(t, obj.IsDeleting(), true)
		calls = append(calls, "finalize")
		return next.Status(wasmctl.Map{"done": true}), failing
	}
	host := guesttest.New(t, greeting())
	host.Run(r)
	host.Delete(ref)
	failing = errors.New("not yet")
	runs := host.Run(r)
	equal(t, []any{len(runs) > 0, runs[0].BackOff, host.Get(ref).IsDeleting(), host.Get(ref).Bool("status", "done")}, []any{true, true, true, true})
	failing, next = nil, wasmctl.Requeue(time.Minute) // it waits for something
	host.Advance(time.Minute)
	host.Run(r)
	equal(t, host.Get(ref).IsDeleting(), true)
	next = wasmctl.AwaitChange()
	host.Advance(time.Minute)
	host.Run(r)
	equal(t, host.Get(ref).Exists(), false)
	equal(t, []any{calls[0], calls[len(calls)-1]}, []any{"reconcile", "finalize"})
}

func TestFinalizer_AnotherOnesHoldsTheObjectWithoutMoreCalls(t *testing.T) {
	n := 0
	r := declaring(func(wasmctl.Object) (wasmctl.Action, error) { return action, nil })
	r.Manifest.Finalizer = finalizer
	r.Finalize = func(*wasmctl.Context, wasmctl.Object) (wasmctl.Action, error) { n++; return action, nil }
	held := greeting()
	held["metadata"] = wasmctl.Map{"name": "hello", "namespace": "default", "finalizers": []any{"other.io/held"}}
	host := guesttest.New(t, held)
	host.Run(r)
	host.Delete(ref)
	for range 3 {
		host.Run(r)
		host.Reconcile(r, ref)
	}
	equal(t, []any{n, host.Get(ref).Strings("metadata", "finalizers")}, []any{1, []string{"other.io/held"}})
}

func TestRun_FollowsOwnersLabelsAnnotationsAndMappers(t *testing.T) {
	ran := 0
	r := declaring(func(wasmctl.Object) (wasmctl.Action, error) { ran++; return wasmctl.Apply(child("hello")), nil })
	r.Manifest.Watches = []wasmctl.Watch{
		{Kind: "Secret", Map: "label:greeting"},
		{Kind: "Pod", Map: "annotation:greeting"},
		{
			Kind:   "Service",
			Filter: func(_ *wasmctl.Context, e wasmctl.WatchEvent) bool { return e.Object().Label("ignored") == "" },
			Mapper: func(_ *wasmctl.Context, e wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
				return []wasmctl.ObjectKey{{Namespace: "default", Name: e.Object().String("spec", "for")}, {Name: "nobody"}}, nil
			},
		},
	}
	host := guesttest.New(t, greeting())
	runs := func() int { ran = 0; host.Run(r); return ran }
	object := func(kind string, meta wasmctl.Map, spec any) wasmctl.Map {
		meta["namespace"], meta["name"] = "default", "x"
		return wasmctl.Map{"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}
	}
	equal(t, []int{runs(), runs()}, []int{2, 0}) // the first run makes a ConfigMap, which causes the second
	host.Remove(cmRef)
	equal(t, []any{runs(), host.Get(cmRef).Exists()}, []any{2, true})
	host.Add(object("Secret", wasmctl.Map{"labels": wasmctl.Map{"greeting": "hello"}}, nil))
	equal(t, runs(), 1)
	host.Add(object("Secret", wasmctl.Map{}, nil)) // the label is gone, but the old state still counts
	equal(t, runs(), 1)
	host.Add(object("Secret", wasmctl.Map{}, 1))
	equal(t, runs(), 0)
	host.Add(object("Pod", wasmctl.Map{"annotations": wasmctl.Map{"greeting": "default/hello"}}, nil))
	equal(t, runs(), 1)
	host.Add(object("Service", wasmctl.Map{"labels": wasmctl.Map{"ignored": "yes"}}, wasmctl.Map{"for": "hello"}))
	equal(t, runs(), 0)
	host.Add(object("Service", wasmctl.Map{}, wasmctl.Map{"for": "hello"}))
	equal(t, runs(), 1)
	host.Delete(ref)
	equal(t, []any{runs(), host.Get(cmRef).Exists()}, []any{0, false})
}

func TestRun_WaitsForRequeuesAndRetries(t *testing.T) {
	var failing error
	r := declaring(func(wasmctl.Object) (wasmctl.Action, error) { return wasmctl.Requeue(time.Minute), failing })
	host := guesttest.New(t, greeting())
	equal(t, []int{len(host.Run(r)), len(host.Run(r))}, []int{1, 0})
	host.Advance(time.Minute)
	failing = errors.New("boom")
	runs := host.Run(r)
	equal(t, []any{len(runs), runs[0].Ref, runs[0].BackOff}, []any{1, ref, true})
	failing = nil
	host.Advance(time.Second)
	equal(t, len(host.Run(r)), 1)
}

func TestEdit_IsANewGenerationAndOneRun(t *testing.T) {
	var texts []string
	r := declaring(func(obj wasmctl.Object) (wasmctl.Action, error) {
		texts = append(texts, obj.String("spec", "text"))
		return action, nil
	})
	host := guesttest.New(t, greeting())
	host.Run(r)
	host.Edit(ref, func(obj *wasmctl.Object) {
		if err := obj.Set("bye", "spec", "text"); err != nil {
			t.Fatal(err)
		}
	})
	host.Run(r)
	equal(t, []any{texts, host.Get(ref).Generation()}, []any{[]string{"hi", "bye"}, int64(2)})
}

func TestHooks_MapFilterAndConfigureAreCalled(t *testing.T) {
	var seen map[string]string
	r := declaring(func(wasmctl.Object) (wasmctl.Action, error) { return action, nil })
	r.Manifest.Config = map[string]string{"a": "default"}
	r.Manifest.Watches = []wasmctl.Watch{{Kind: "ConfigMap", Mapper: func(ctx *wasmctl.Context, e wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
		if e.Type == wasmctl.WatchDeleted {
			return nil, errors.New("boom")
		}
		if _, err := ctx.Client().Get(ref, wasmctl.GetOptions{}); !wasmctl.IsUnavailable(err) {
			t.Errorf("a request in map: %v", err)
		}
		_, err := ctx.Cache().Get(ref)
		return []wasmctl.ObjectKey{e.Key}, err
	}}}
	r.Configure = func(ctx *wasmctl.Context, settings map[string]string) error {
		if settings["a"] == "" {
			return errors.New("a is needed")
		}
		seen = settings
		equal(t, ctx.ConfigGeneration(), int64(2))
		return nil
	}
	host := guesttest.New(t, greeting())
	cm, err := wasmctl.NewObject(configMap(nil))
	equal(t, err, nil)
	keys, err := host.Map(r, wasmctl.WatchEvent{New: cm})
	equal(t, []any{keys, err}, []any{[]wasmctl.ObjectKey{cmRef.Key()}, nil})
	_, err = host.Map(r, wasmctl.WatchEvent{Old: cm})
	equal(t, err != nil && err.Error() == "boom", true)
	equal(t, host.Filter(r, wasmctl.WatchEvent{New: cm}), true)
	equal(t, host.Configure(r, map[string]string{"b": "1"}), nil)
	equal(t, seen, map[string]string{"a": "default", "b": "1"})
	if err := host.Configure(r, map[string]string{"a": ""}); err == nil || err.Error() != "a is needed" {
		t.Errorf("got %v", err)
	}
	r.Reconcile = func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
		all, err := ctx.AllConfig()
		equal(t, []any{all, err, ctx.ConfigGeneration()}, []any{map[string]string{"a": "default", "b": "1"}, nil, int64(2)})
		return action, nil
	}
	host.Reconcile(r, ref)
}
