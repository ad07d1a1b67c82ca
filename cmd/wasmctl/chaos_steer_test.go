package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// statusOf asks a process how it does.
func statusOf(t *testing.T, socket string) admin.Controller {
	t.Helper()
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil || len(st.Controllers) != 1 {
		t.Fatalf("%d controllers: %v", len(st.Controllers), err)
	}
	return st.Controllers[0]
}

// awaitPhase waits until the watch of a resource is in a phase, and says so in
// "wasmctl status".
func awaitPhase(t *testing.T, socket, resource, phase string) admin.Watch {
	t.Helper()
	var found admin.Watch
	enginetest.Until(t, fmt.Sprintf("the watch of %s is %s", resource, phase), func() bool {
		for _, w := range statusOf(t, socket).Watches {
			if strings.HasPrefix(w.Source, resource) && w.Phase == phase {
				found = w
				return true
			}
		}
		return false
	})
	return found
}

// TestSteer_TriggerPauseResume: a paused controller starts no reconcile and
// keeps what is asked for; trigger asks for named objects or for all.
func TestSteer_TriggerPauseResume(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	f.put(t.Context(), "a", app{image: "i:1"})
	f.put(t.Context(), "b", app{image: "i:1"})
	c := f.start("--socket", socket)
	f.confirm()
	if got := steer(t, "trigger", socket, "webapp", f.ns+"/a"); got != "triggered 1 object\n" {
		t.Errorf("trigger says %q", got)
	}
	c.wantLine(`"object":"`+f.ns+`/a"`, `"reason":"Triggered`)
	if got := steer(t, "trigger", socket, "webapp", "--all"); got != "triggered 2 objects\n" {
		t.Errorf("trigger --all says %q", got)
	}
	c.wantLine(`"object":"`+f.ns+`/b"`, `"reason":"Triggered`)

	steer(t, "pause", socket, "webapp")
	enginetest.Until(t, "nothing runs", func() bool { return statusOf(t, socket).Running == 0 })
	before := statusOf(t, socket)
	if text := steer(t, "status", socket); !before.Paused || !strings.Contains(text, "paused") {
		t.Errorf("status does not say that it is paused: %s", text)
	}
	f.put(t.Context(), "a", app{image: "i:2"})
	f.put(t.Context(), "b", app{image: "i:3", port: true})
	enginetest.Until(t, "both are asked for", func() bool { return statusOf(t, socket).Ready == 2 })
	if st := statusOf(t, socket); st.Runs != before.Runs {
		t.Errorf("%d reconciles of a paused controller", st.Runs-before.Runs)
	}
	steer(t, "resume", socket, "webapp")
	f.confirm()
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, c.runs())
}

// TestSteer_PausedObject: an object with the annotation is left alone, and the
// others are not; without it, its last state is reconciled.
func TestSteer_PausedObject(t *testing.T) {
	t.Parallel()
	f := newFleet(t, devclustertest.Shared(t))
	f.put(t.Context(), "a", app{image: "i:1"})
	c := f.start("--socket", "none")
	f.confirm()
	f.patch(webApps, "a", `{"metadata": {"annotations": {"wasmctl.dev/paused": "true"}}}`)
	c.wantLine(`"msg":"object paused"`, `"object":"`+f.ns+`/a"`)
	f.put(t.Context(), "a", app{image: "i:2"})
	f.put(t.Context(), "b", app{image: "i:1"}) // after it, and so reconciled after it would have been
	c.wantLine(`"msg":"reconciled"`, `"object":"`+f.ns+`/b"`)
	f.patch(deployments, "a", `{"metadata": {"labels": {"touched": "yes"}}}`)
	enginetest.Until(t, "each change has been looked at", func() bool { return strings.Count(c.text(), `"msg":"object paused"`) >= 2 })
	if err := f.differs(t.Context()); err == nil || !strings.Contains(err.Error(), `a: deployment "i:1 of`) {
		t.Errorf("a paused object was reconciled: %v", err)
	}
	f.patch(webApps, "a", `{"metadata": {"annotations": {"wasmctl.dev/paused": null}}}`)
	f.confirm()
	wantNoneTwice(t, c.runs())
}

func (f *fleet) patch(gvr schema.GroupVersionResource, name, json string) {
	f.t.Helper()
	if _, err := f.client.Resource(gvr).Namespace(f.ns).Patch(f.t.Context(), name, types.MergePatchType, []byte(json), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// TestChildren_PrunedAreOurs: a Service that is no longer declared goes, one of
// the same kind that is somebody else's stays, and what is changed or deleted
// by hand comes back.
func TestChildren_PrunedAreOurs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, devclustertest.Shared(t))
	c := f.start("--socket", "none")
	f.put(t.Context(), "a", app{image: "i:1", port: true})
	f.confirm()
	in := f.client.Resource(services).Namespace(f.ns)
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "foreign", "labels": map[string]any{"app.kubernetes.io/name": "a"}},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}},
	}}
	if _, err := in.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.put(t.Context(), "a", app{image: "i:2"})
	f.confirm()
	if _, err := in.Get(t.Context(), "foreign", metav1.GetOptions{}); err != nil {
		t.Errorf("somebody else's Service: %v", err)
	}
	f.put(t.Context(), "a", app{image: "i:2", port: true})
	f.confirm()
	if err := in.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.patch(deployments, "a", `{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hacked"}]}}}}`)
	f.confirm()
	wantNoneTwice(t, c.runs())
}

// TestFinalizer_CleansUpBeforeTheObjectGoes: rule 21, through the binary: the
// finalizer is there before the first apply, a deletion waits for finalize, and
// one that is asked for while nobody runs is carried out later.
func TestFinalizer_CleansUpBeforeTheObjectGoes(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	f := newFleet(t, cluster)
	devclustertest.ApplyFile(t, cluster, "../../examples/dnsrecord/crd.yaml")
	zone := f.ns // a zone of our own in the namespace that the module may write to
	devclustertest.Apply(t, cluster, fmt.Appendf(nil, `
{apiVersion: v1, kind: Namespace, metadata: {name: dns-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]q, namespace: dns-system}}
---
{apiVersion: examples.wasmctl.dev/v1, kind: DNSRecord, metadata: {name: a, namespace: %[1]q}, spec: {zone: %[1]q, hostname: www, address: 192.0.2.1}}
---
{apiVersion: examples.wasmctl.dev/v1, kind: DNSRecord, metadata: {name: b, namespace: %[1]q}, spec: {zone: %[1]q, hostname: ftp, address: 192.0.2.2}}
`, zone))
	records := f.client.Resource(schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "dnsrecords"}).Namespace(f.ns)
	remove := func(name string) {
		if err := records.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string { // the records that there are, and the entries of the zone
		list, err := records.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, u := range list.Items {
			names = append(names, fmt.Sprint(u.GetName(), u.GetFinalizers()))
		}
		return strings.Join(names, " ") + ": " + f.entries(t.Context(), zone)
	}
	run := func() *child {
		return startWasmctl(t, exampleWasm(t, "dnsrecord"), "-n", f.ns, "--socket", "none", "--kubeconfig", cluster.Kubeconfig())
	}
	const mark = "[examples.wasmctl.dev/dnsrecord]"
	c := run()
	enginetest.Until(t, "both are in the zone", func() bool { return left() == "a"+mark+" b"+mark+": ftp www" })
	remove("a")
	enginetest.Until(t, "a is gone, and its entry", func() bool { return left() == "b"+mark+": ftp" })
	c.wantLine(`"msg":"finalized"`, `"object":"`+f.ns+`/a"`)
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, c.runs())
	remove("b")
	if got := left(); got != "b"+mark+": ftp" {
		t.Errorf("with nobody there to clean up: %s", got)
	}
	run()
	enginetest.Until(t, "nothing is left", func() bool { return left() == ": " })
}

// entries returns the names in a zone.
func (f *fleet) entries(ctx context.Context, zone string) string {
	cm, err := f.client.Resource(configMaps).Namespace("dns-system").Get(ctx, zone, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	data, _, _ := unstructured.NestedMap(cm.Object, "data")
	for _, name := range []string{"ftp", "www"} {
		if data[name] != nil {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
