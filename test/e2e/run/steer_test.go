// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestSteer_TriggerPauseResume: a paused controller starts no reconcile, and queues the
// requests; trigger requests reconciles of named objects or of all.
func TestSteer_TriggerPauseResume(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	f.Put(t.Context(), "b", e2e.App{Image: "i:1"})
	c := f.Start("--socket", socket)
	f.Confirm()
	if got := e2e.Steer(t, "trigger", socket, "webapp", f.Ns+"/a"); got != "triggered 1 object\n" {
		t.Errorf("trigger printed %q", got)
	}
	c.Until("a has run", func() bool { return len(runsOf(explained(f, socket, "a"), abi.ReasonTriggered)) > 0 })
	if got := e2e.Steer(t, "trigger", socket, "webapp", "--all"); got != "triggered 2 objects\n" {
		t.Errorf("trigger --all printed %q", got)
	}
	c.Until("b has run", func() bool { return len(runsOf(explained(f, socket, "b"), abi.ReasonTriggered)) > 0 })

	e2e.Steer(t, "pause", socket, "webapp")
	enginetest.Until(t, "nothing runs", func() bool { return e2e.StatusOf(t, socket).Running == 0 })
	before := e2e.StatusOf(t, socket)
	if text := e2e.Steer(t, "status", socket); !before.Paused || !strings.Contains(text, "paused") {
		t.Errorf("status does not say that it is paused: %s", text)
	}
	f.Put(t.Context(), "a", e2e.App{Image: "i:2"})
	f.Put(t.Context(), "b", e2e.App{Image: "i:3", Port: true})
	enginetest.Until(t, "both are asked for", func() bool { return e2e.StatusOf(t, socket).Ready == 2 })
	if st := e2e.StatusOf(t, socket); st.Runs != before.Runs {
		t.Errorf("%d reconciles of a paused controller", st.Runs-before.Runs)
	}
	e2e.Steer(t, "resume", socket, "webapp")
	f.Confirm()
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
}

// TestSteer_PausedObject: only the object with the annotation is not reconciled. Without
// the annotation, its last state is.
func TestSteer_PausedObject(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	c := f.Start("--socket", "none")
	f.Confirm()
	e2e.Patch(f, e2e.WebApps, "a", `{"metadata": {"annotations": {"wasmctl.dev/paused": "true"}}}`)
	c.WantLine(`"msg":"object paused"`, `"object":"`+f.Ns+`/a"`)
	f.Put(t.Context(), "a", e2e.App{Image: "i:2"})
	f.Put(t.Context(), "b", e2e.App{Image: "i:1"}) // changed after "a", so it is reconciled after "a" would have been
	c.WantLine(`"msg":"reconciled"`, `"object":"`+f.Ns+`/b"`)
	e2e.Patch(f, e2e.Deployments, "a", `{"metadata": {"labels": {"touched": "yes"}}}`)
	enginetest.Until(t, "each change has been looked at", func() bool { return strings.Count(c.Text(), `"msg":"object paused"`) >= 2 })
	if err := f.Differs(t.Context()); err == nil || !strings.Contains(err.Error(), `a: deployment "i:1 of`) {
		t.Errorf("a paused object was reconciled: %v", err)
	}
	e2e.Patch(f, e2e.WebApps, "a", `{"metadata": {"annotations": {"wasmctl.dev/paused": null}}}`)
	f.Confirm()
	e2e.WantNoneTwice(t, c.Reconciles())
}

// TestChildren_PrunedAreOurs: a Service that is no longer declared is deleted, one with
// another owner is not, and changes and deletions by hand are undone.
func TestChildren_PrunedAreOurs(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	c := f.Start("--socket", "none")
	f.Put(t.Context(), "a", e2e.App{Image: "i:1", Port: true})
	f.Confirm()
	in := f.Client.Resource(e2e.Services).Namespace(f.Ns)
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "foreign", "labels": map[string]any{"app.kubernetes.io/name": "a"}},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}},
	}}
	if _, err := in.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Put(t.Context(), "a", e2e.App{Image: "i:2"})
	f.Confirm()
	if _, err := in.Get(t.Context(), "foreign", metav1.GetOptions{}); err != nil {
		t.Errorf("the Service of another owner: %v", err)
	}
	f.Put(t.Context(), "a", e2e.App{Image: "i:2", Port: true})
	f.Confirm()
	if err := in.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Patch(f, e2e.Deployments, "a", `{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hacked"}]}}}}`)
	f.Confirm()
	e2e.WantNoneTwice(t, c.Reconciles())
}

// TestFinalizer_CleansUpBeforeTheObjectGoes: rule 21, through the binary: the finalizer
// exists before the first apply, a deletion waits for finalize, and a deletion while no
// process runs is carried out later.
func TestFinalizer_CleansUpBeforeTheObjectGoes(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	f := e2e.NewFleet(t, cluster)
	devclustertest.ApplyFile(t, cluster, "../../../examples/dnsrecord/crd.yaml")
	zone := f.Ns // a zone of our own in the namespace that the module may write to
	devclustertest.Apply(t, cluster, fmt.Appendf(nil, `
{apiVersion: v1, kind: Namespace, metadata: {name: dns-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]q, namespace: dns-system}}
---
{apiVersion: examples.wasmctl.dev/v1, kind: DNSRecord, metadata: {name: a, namespace: %[1]q}, spec: {zone: %[1]q, hostname: www, address: 192.0.2.1}}
---
{apiVersion: examples.wasmctl.dev/v1, kind: DNSRecord, metadata: {name: b, namespace: %[1]q}, spec: {zone: %[1]q, hostname: ftp, address: 192.0.2.2}}
`, zone))
	records := f.Client.Resource(schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "dnsrecords"}).Namespace(f.Ns)
	remove := func(name string) {
		if err := records.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string { // the existing records, and the entries of the zone
		list, err := records.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, u := range list.Items {
			names = append(names, fmt.Sprint(u.GetName(), u.GetFinalizers()))
		}
		return strings.Join(names, " ") + ": " + entries(t.Context(), f, zone)
	}
	run := func() *e2e.Process {
		return e2e.Run(t, e2e.Example(t, "dnsrecord"), "-n", f.Ns, "--socket", "none", "--kubeconfig", cluster.Kubeconfig())
	}
	const mark = "[examples.wasmctl.dev/dnsrecord]"
	c := run()
	enginetest.Until(t, "both are in the zone", func() bool { return left() == "a"+mark+" b"+mark+": ftp www" })
	remove("a")
	enginetest.Until(t, "a is gone, and its entry", func() bool { return left() == "b"+mark+": ftp" })
	c.WantLine(`"msg":"finalized"`, `"object":"`+f.Ns+`/a"`)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
	remove("b")
	if got := left(); got != "b"+mark+": ftp" {
		t.Errorf("without a process to clean up: %s", got)
	}
	run()
	enginetest.Until(t, "nothing is left", func() bool { return left() == ": " })
}

// entries returns the names in a zone.
func entries(ctx context.Context, f *e2e.Fleet, zone string) string {
	cm, err := f.Client.Resource(e2e.ConfigMaps).Namespace("dns-system").Get(ctx, zone, metav1.GetOptions{})
	if err != nil {
		f.T.Fatal(err)
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
