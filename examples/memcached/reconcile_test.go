// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var (
	mcRef  = wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: "default", Name: "sessions"}
	depRef = deploymentIn("caches", "default-sessions")
)

func memcached() wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": apiVersion, "kind": kind, "metadata": wasmctl.Map{"name": "sessions", "namespace": "default"},
		"spec": wasmctl.Map{"namespace": "caches", "size": 2, "image": "memcached:1.6"},
	}
}

func start(t *testing.T) *guesttest.Host {
	t.Helper()
	host := guesttest.New(t, memcached())
	host.Run(reconciler)
	return host
}

func set(t *testing.T, host *guesttest.Host, ref wasmctl.ObjectRef, value any, path ...string) {
	t.Helper()
	o := host.Get(ref)
	if err := o.Set(value, path...); err != nil {
		t.Fatal(err)
	}
	host.Add(o)
	host.Run(reconciler)
}

func ready(host *guesttest.Host) string {
	c, _ := host.Get(mcRef).Conditions().Get("Ready")
	return c.Status + " " + c.Reason
}

func TestMemcached_RunsInTheOtherNamespaceAndIsFollowed(t *testing.T) {
	host := start(t)
	dep := host.Get(depRef)
	if key, ok := primary(dep); !ok || key != mcRef.Key() || dep.Int("spec", "replicas") != 2 {
		t.Errorf("deployment names %v, %v", key, ok)
	}
	if got := ready(host); got != "False Progressing" {
		t.Errorf("at first: %s", got)
	}
	set(t, host, depRef, 2, "status", "readyReplicas") // a change in the other namespace reconciles the object in this one
	if got := ready(host); got != "True Available" || host.Get(mcRef).Int("status", "ready") != 2 {
		t.Errorf("with two ready: %s", got)
	}
	set(t, host, depRef, 7, "spec", "replicas")
	if got := host.Get(depRef).Int("spec", "replicas"); got != 2 {
		t.Errorf("somebody scaled it: %d replicas", got)
	}
	host.Remove(depRef)
	host.Run(reconciler)
	if !host.Get(depRef).Exists() {
		t.Error("a deployment that was deleted is not there again")
	}
}

func TestMemcached_MovesAndLeavesNothingBehind(t *testing.T) {
	host := start(t)
	set(t, host, mcRef, "elsewhere", "spec", "namespace")
	if host.Get(depRef).Exists() || !host.Get(deploymentIn("elsewhere", "default-sessions")).Exists() {
		t.Error("the old deployment is there, or the new one is not")
	}
}

func TestMemcached_TakesItsDeploymentAlong(t *testing.T) {
	host := start(t)
	host.FailNext("api_delete", wasmctl.Error{Status: 503, Reason: "ServiceUnavailable"})
	host.Delete(mcRef)
	host.Run(reconciler)
	if !host.Get(mcRef).Exists() {
		t.Fatal("the object is gone before its deployment")
	}
	host.Advance(time.Minute)
	host.Run(reconciler)
	if host.Get(mcRef).Exists() || host.Get(depRef).Exists() {
		t.Error("the object or its deployment is still there")
	}
}

func TestMemcached_LeavesDeploymentsOfOthersAlone(t *testing.T) {
	host := guesttest.New(t, memcached(), wasmctl.Map{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": wasmctl.Map{"name": depRef.Name, "namespace": depRef.Namespace}, "spec": wasmctl.Map{"replicas": 7},
	})
	host.Run(reconciler)
	if got := ready(host); got != "False NotOwned" || host.Get(depRef).Int("spec", "replicas") != 7 {
		t.Errorf("ready %s", got)
	}
	host.Delete(mcRef)
	host.Run(reconciler)
	if host.Get(mcRef).Exists() || !host.Get(depRef).Exists() {
		t.Error("the object is there, or the deployment of others is not")
	}
}

// TestMapper_NamesBothWhenAnAnnotationChanges: rule 24: a change triggers both the old and the new owner.
func TestMapper_NamesBothWhenAnAnnotationChanges(t *testing.T) {
	host := start(t)
	named := func(typ, name string) wasmctl.Object {
		o, err := wasmctl.NewObject(wasmctl.Map{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": wasmctl.Map{"name": "d", "namespace": "x", "annotations": wasmctl.Map{primaryType: typ, primaryName: name}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	ours := kind + "." + group
	a, b := wasmctl.ObjectKey{Namespace: "ns", Name: "a"}, wasmctl.ObjectKey{Namespace: "ns", Name: "b"}
	cases := []struct {
		event wasmctl.WatchEvent
		want  []wasmctl.ObjectKey
	}{
		{wasmctl.WatchEvent{New: named(ours, "ns/a")}, []wasmctl.ObjectKey{a}},
		{wasmctl.WatchEvent{Old: named(ours, "ns/a")}, []wasmctl.ObjectKey{a}},
		{wasmctl.WatchEvent{Old: named(ours, "ns/a"), New: named(ours, "ns/b")}, []wasmctl.ObjectKey{a, b}},
		{wasmctl.WatchEvent{Old: named(ours, "ns/a"), New: named(ours, "ns/a")}, []wasmctl.ObjectKey{a}},
		{wasmctl.WatchEvent{New: named("Redis.cache.example.com", "ns/a")}, nil},
		{wasmctl.WatchEvent{New: named(ours, "no slash")}, nil},
	}
	for i, c := range cases {
		got, err := host.Map(reconciler, c.event)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("case %d: mapped to %v, %v; want %v", i, got, err, c.want)
		}
	}
}

func TestMemcached_ARunWithoutAChangeWritesNothing(t *testing.T) {
	host := start(t)
	before := len(host.Changes())
	host.Advance(time.Hour)
	host.Reconcile(reconciler, mcRef)
	if changes := host.Changes()[before:]; len(changes) != 0 {
		t.Errorf("it changed %+v", changes)
	}
}
