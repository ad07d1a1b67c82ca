// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var (
	genRef = wasmctl.ObjectRef{APIVersion: "examples.wasmctl.dev/v1", Kind: "ConfigMapGenerator", Namespace: "default", Name: "hello"}
	cmRef  = wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello"}
)

func generator(content string) wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": genRef.APIVersion, "kind": genRef.Kind,
		"metadata": wasmctl.Map{"name": genRef.Name, "namespace": genRef.Namespace},
		"spec":     wasmctl.Map{"content": content},
	}
}

// edit changes the spec like a user: the generation increases.
func edit(host *guesttest.Host, content string) {
	gen := host.Get(genRef)
	changed := generator(content)
	changed["metadata"] = wasmctl.Map{
		"name": gen.Name(), "namespace": gen.Namespace(), "uid": gen.UID(), "generation": gen.Generation() + 1,
	}
	changed["status"] = gen.At("status")
	host.Add(changed)
}

// ready returns the status and the reason of the Ready condition, and when it changed.
func ready(host *guesttest.Host) (condition string, since time.Time) {
	c := readyCondition(host.Get(genRef))
	return c.String("status") + " " + c.String("reason"), c.Time("lastTransitionTime")
}

func TestReconcile_MakesTheConfigMapAndOwnsIt(t *testing.T) {
	host := guesttest.New(t, generator("hello, world"))
	result := host.Reconcile(reconciler, genRef)

	if result.Failure != nil || result.Action != wasmctl.Requeue(300*time.Second) {
		t.Errorf("run ended with %v, %+v", result.Action, result.Failure)
	}
	cm, gen := host.Get(cmRef), host.Get(genRef)
	if got := cm.String("data", "content"); got != "hello, world" {
		t.Errorf("content is %q", got)
	}
	if owner, ok := cm.Controller(); !ok || owner != gen.ControllerRef() || !owner.BlockOwnerDeletion {
		t.Errorf("owner is %+v", owner)
	}
	if got, _ := ready(host); got != "True Applied" || gen.Int("status", "observedGeneration") != 1 {
		t.Errorf("ready %s, observed generation %d", got, gen.Int("status", "observedGeneration"))
	}
}

// TestReconcile_ARunWithoutAChangeWritesNothing: a run that writes would change the object, which would be reconciled
// again, forever.
func TestReconcile_ARunWithoutAChangeWritesNothing(t *testing.T) {
	host := guesttest.New(t, generator("a"))
	host.Reconcile(reconciler, genRef)
	before := len(host.Changes())
	if before != 2 {
		t.Errorf("the first run made %d changes, want the ConfigMap and the status", before)
	}
	for range 3 {
		host.Advance(time.Hour)
		host.Reconcile(reconciler, genRef)
	}
	if changes := host.Changes()[before:]; len(changes) != 0 {
		t.Errorf("later runs changed %+v", changes)
	}
}

func TestReconcile_FollowsTheSpecAndKeepsTheTransitionTime(t *testing.T) {
	host := guesttest.New(t, generator("a"))
	host.Reconcile(reconciler, genRef)
	_, first := ready(host)

	host.Advance(time.Hour)
	edit(host, "b")
	host.Reconcile(reconciler, genRef)
	if got := host.Get(cmRef).String("data", "content"); got != "b" {
		t.Errorf("content is %q", got)
	}
	if got := host.Get(genRef).Int("status", "observedGeneration"); got != 2 {
		t.Errorf("observed generation is %d", got)
	}
	if _, since := ready(host); first.IsZero() || !since.Equal(first) {
		t.Errorf("ready since %v, want %v: it was ready all the time", since, first)
	}
}

func TestReconcile_RepairsTheConfigMap(t *testing.T) {
	host := guesttest.New(t, generator("a"))
	host.Reconcile(reconciler, genRef)
	host.Remove(cmRef)
	host.Reconcile(reconciler, genRef)
	if got := host.Get(cmRef).String("data", "content"); got != "a" {
		t.Errorf("content is %q", got)
	}
}

func TestReconcile_LeavesAloneWhatOthersControl(t *testing.T) {
	theirs := wasmctl.Map{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": wasmctl.Map{
			"name": "hello", "namespace": "default",
			"ownerReferences": []any{wasmctl.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "boss", UID: "1", Controller: true}},
		},
		"data": wasmctl.Map{"content": "theirs"},
	}
	host := guesttest.New(t, generator("ours"), theirs)
	host.Reconcile(reconciler, genRef)
	_, since := ready(host)
	host.Advance(time.Minute)
	result := host.Reconcile(reconciler, genRef)

	if got := host.Get(cmRef).String("data", "content"); got != "theirs" {
		t.Errorf("content is %q", got)
	}
	f := result.Failure
	if f == nil || f.Class != wasmctl.ErrorPermanent || f.Reason != "NotOwned" || result.Action != wasmctl.AwaitChange() {
		t.Errorf("run ended with %v, %+v", result.Action, f)
	}
	if got, again := ready(host); got != "False NotOwned" || !again.Equal(since) {
		t.Errorf("ready %s since %v, want since %v", got, again, since)
	}

	host.Remove(cmRef)
	host.Advance(time.Minute)
	host.Reconcile(reconciler, genRef)
	if got, again := ready(host); got != "True Applied" || !again.After(since) {
		t.Errorf("after it was given up: ready %s since %v", got, again)
	}
}

func TestReconcile_AFailedApplyShowsInTheStatusAndIsRetried(t *testing.T) {
	host := guesttest.New(t, generator("a"))
	host.FailNext("api_apply", wasmctl.Error{Status: 403, Reason: "Forbidden", Message: "quota"})
	result := host.Reconcile(reconciler, genRef)
	if result.Failure == nil || result.Failure.Class != wasmctl.ErrorTransient || result.Action != wasmctl.Requeue(60*time.Second) {
		t.Errorf("run ended with %v, %+v", result.Action, result.Failure)
	}
	if got, _ := ready(host); got != "False ApplyFailed" {
		t.Errorf("ready %s", got)
	}
	host.Reconcile(reconciler, genRef)
	if got, _ := ready(host); got != "True Applied" {
		t.Errorf("after the retry: ready %s", got)
	}
}

func TestReconcile_AFailedStatusWriteFailsTheRun(t *testing.T) {
	host := guesttest.New(t, generator("a"))
	host.FailNext("api_apply", wasmctl.Error{Status: 500, Reason: "InternalError"})
	host.FailNext("api_apply", wasmctl.Error{Status: 500, Reason: "InternalError"})
	if host.Reconcile(reconciler, genRef).Failure == nil {
		t.Error("the run did not fail")
	}
	if host.Reconcile(reconciler, genRef).Failure != nil || host.Get(genRef).Int("status", "observedGeneration") != 1 {
		t.Error("the next run did not make up for it")
	}
}

// TestReconcile_DoesNotWorkAgainstADeletion: creating the ConfigMap again would block a foreground deletion of its
// owner.
func TestReconcile_DoesNotWorkAgainstADeletion(t *testing.T) {
	gen := generator("a")
	gen["metadata"] = wasmctl.Map{
		"name": "hello", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"foregroundDeletion"},
	}
	host := guesttest.New(t, gen)
	result := host.Reconcile(reconciler, genRef)
	if result.Failure != nil || result.Action != wasmctl.AwaitChange() || len(host.Calls()) != 0 {
		t.Errorf("run ended with %v, %+v after %v", result.Action, result.Failure, host.Calls())
	}
}
