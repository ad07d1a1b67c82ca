// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var (
	appRef  = wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: "default", Name: "hello"}
	depRef  = wasmctl.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "hello"}
	servRef = wasmctl.ObjectRef{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "hello"}
)

func app(spec wasmctl.Map) wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": apiVersion, "kind": kind, "metadata": wasmctl.Map{"name": "hello", "namespace": "default"}, "spec": spec,
	}
}

func start(t *testing.T, spec wasmctl.Map) *guesttest.Host {
	t.Helper()
	host := guesttest.New(t, app(spec))
	host.Run(reconciler)
	return host
}

// rollOut acts like the Deployment's own controller.
func rollOut(t *testing.T, host *guesttest.Host, available int64) {
	t.Helper()
	dep := host.Get(depRef)
	status := wasmctl.Map{"observedGeneration": dep.Generation(), "availableReplicas": available}
	if err := dep.Set(status, "status"); err != nil {
		t.Fatal(err)
	}
	host.Add(dep)
}

func ready(host *guesttest.Host) (is string, since time.Time) {
	c, _ := host.Get(appRef).Conditions().Get("Ready")
	return c.Status + " " + c.Reason, c.LastTransitionTime
}

func edit(t *testing.T, host *guesttest.Host, f func(o *wasmctl.Object) error) {
	t.Helper()
	host.Edit(appRef, func(o *wasmctl.Object) {
		if err := f(o); err != nil {
			t.Fatal(err)
		}
	})
	host.Run(reconciler)
}

func TestWebApp_MakesItsChildren(t *testing.T) {
	host := start(t, wasmctl.Map{"image": "nginx:1", "replicas": 2, "port": 8080})
	owner, dep, serv := host.Get(appRef), host.Get(depRef), host.Get(servRef)
	for _, child := range []wasmctl.Object{dep, serv} {
		if !child.IsControlledBy(owner) {
			t.Errorf("%v is not controlled by the app", child.Ref())
		}
	}
	containers, err := wasmctl.Decode[[]struct {
		Image string `json:"image"`
		Ports []struct {
			ContainerPort int `json:"containerPort"`
		} `json:"ports"`
	}](dep.Value, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 || containers[0].Image != "nginx:1" || containers[0].Ports[0].ContainerPort != 8080 {
		t.Errorf("containers are %+v, %v", containers, err)
	}
	for _, p := range serv.Elements("spec", "ports") {
		if p.Int("port") != 80 || p.Int("targetPort") != 8080 {
			t.Errorf("the service's port is %d to %d", p.Int("port"), p.Int("targetPort"))
		}
	}
	if dep.Int("spec", "replicas") != 2 || dep.StringMap("spec", "selector", "matchLabels")["app.kubernetes.io/name"] != "hello" {
		t.Errorf("the deployment is %v", dep.Ref())
	}
}

func TestWebApp_StatusFollowsTheDeployment(t *testing.T) {
	host := start(t, wasmctl.Map{"image": "nginx:1", "replicas": 2})
	steps := []struct {
		available int64
		want      string
	}{{0, "False Progressing"}, {1, "False Progressing"}, {2, "True Available"}}
	if is, _ := ready(host); is != "Unknown Progressing" {
		t.Errorf("at first: %s", is)
	}
	var since time.Time
	for _, step := range steps {
		host.Advance(time.Minute)
		rollOut(t, host, step.available)
		host.Run(reconciler)
		is, at := ready(host)
		if is != step.want || host.Get(appRef).Int("status", "replicas") != step.available {
			t.Errorf("%d available: %s", step.available, is)
		}
		since = at
	}
	host.Advance(time.Minute)
	edit(t, host, func(o *wasmctl.Object) error { return o.Set("nginx:2", "spec", "image") })
	if is, _ := ready(host); is != "Unknown Progressing" {
		t.Errorf("after a new image: %s", is)
	}
	host.Advance(time.Minute)
	rollOut(t, host, 2)
	host.Run(reconciler)
	if is, at := ready(host); is != "True Available" || !at.After(since) {
		t.Errorf("rolled out: %s since %v", is, at)
	}
}

func TestWebApp_WithoutAPortHasNoService(t *testing.T) {
	host := start(t, wasmctl.Map{"image": "nginx:1", "port": 80})
	if !host.Get(servRef).Exists() {
		t.Fatal("there is no service")
	}
	edit(t, host, func(o *wasmctl.Object) error { o.Remove("spec", "port"); return nil })
	if host.Get(servRef).Exists() || !host.Get(depRef).Exists() {
		t.Error("the service is there, or the deployment is not")
	}
}

func TestWebApp_LeavesADeploymentOfOthersAlone(t *testing.T) {
	for _, refs := range [][]any{nil, {wasmctl.OwnerReference{APIVersion: "v1", Kind: "Boss", Name: "b", UID: "9", Controller: true}}} {
		host := guesttest.New(t, app(wasmctl.Map{"image": "nginx:1"}), wasmctl.Map{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": wasmctl.Map{"name": "hello", "namespace": "default", "ownerReferences": refs}, "spec": wasmctl.Map{"replicas": 7},
		})
		result := host.Reconcile(reconciler, appRef)
		f := result.Failure
		if f == nil || f.Class != wasmctl.ErrorPermanent || f.Reason != "NotOwned" || host.Get(depRef).Int("spec", "replicas") != 7 {
			t.Errorf("run ended with %+v", f)
		}
		if is, _ := ready(host); is != "False NotOwned" || len(host.Events()) != 1 || len(host.Changes()) != 1 {
			t.Errorf("ready %s, events %v, changes %v", is, host.Events(), host.Changes())
		}
	}
}

func TestWebApp_SettingsAreCheckedAndUsed(t *testing.T) {
	t.Cleanup(func() { defaultReplicas = 1 })
	host := start(t, wasmctl.Map{"image": "nginx:1"})
	if n := host.Get(depRef).Int("spec", "replicas"); n != 1 {
		t.Errorf("%d replicas", n)
	}
	for _, bad := range []string{"many", "-1", ""} {
		if err := host.Configure(reconciler, map[string]string{"defaultReplicas": bad}); err == nil || !strings.Contains(err.Error(), "defaultReplicas") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := host.Configure(reconciler, map[string]string{"defaultReplicas": "3"}); err != nil {
		t.Fatal(err)
	}
	host.Reconcile(reconciler, appRef)
	if n := host.Get(depRef).Int("spec", "replicas"); n != 3 {
		t.Errorf("%d replicas", n)
	}
}

func TestWebApp_ARunWithoutAChangeWritesNothing(t *testing.T) {
	host := start(t, wasmctl.Map{"image": "nginx:1", "port": 80})
	before := len(host.Changes())
	host.Advance(time.Hour)
	host.Reconcile(reconciler, appRef)
	if changes := host.Changes()[before:]; len(changes) != 0 {
		t.Errorf("it changed %+v", changes)
	}
}
