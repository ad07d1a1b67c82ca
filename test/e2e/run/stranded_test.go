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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

var dnsRecords = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "dnsrecords"}

// records are DNSRecords with a label that the controller selects.
type records struct {
	t *testing.T
	dynamic.ResourceInterface
}

func newRecords(f *e2e.Fleet, names ...string) records {
	devclustertest.ApplyFile(f.T, f.Cluster, "../../../examples/dnsrecord/crd.yaml")
	devclustertest.Apply(f.T, f.Cluster, fmt.Appendf(nil, `
{apiVersion: v1, kind: Namespace, metadata: {name: dns-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: %q, namespace: dns-system}}
`, f.Ns))
	r := records{f.T, f.Client.Resource(dnsRecords).Namespace(f.Ns)}
	for _, name := range names {
		_, err := r.Create(f.T.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "examples.wasmctl.dev/v1", "kind": "DNSRecord", "metadata": map[string]any{"name": name, "labels": map[string]any{"team": "a"}},
			"spec": map[string]any{"zone": f.Ns, "hostname": name, "address": "192.0.2.1"},
		}}, metav1.CreateOptions{})
		if err != nil {
			f.T.Fatal(err)
		}
	}
	return r
}

// finalizers returns the finalizers of the records, by name.
func (r records) finalizers(ctx context.Context) string {
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, u := range list.Items {
		all = append(all, fmt.Sprint(u.GetName(), u.GetFinalizers()))
	}
	return strings.Join(all, " ")
}

func (r records) relabel(name, team string) {
	patch := fmt.Appendf(nil, `{"metadata": {"labels": {"team": %q}}}`, team)
	if _, err := r.Patch(r.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r records) remove(name string) {
	if err := r.Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// strandedIn returns the stranded objects in a status.
func strandedIn(t *testing.T, socket string) (s admin.Stranded, state string) {
	st := e2e.StatusOf(t, socket)
	if st.Stranded != nil {
		s = *st.Stranded
	}
	return s, st.State
}

// TestStranded_ObjectsThatLeaveTheWatchAreNamedAndReleased: an object that leaves the selector keeps the finalizer. status and explain name
// it, and release takes the finalizer off, and its deletion ends. Objects that are watched are not released.
func TestStranded_ObjectsThatLeaveTheWatchAreNamedAndReleased(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	r := newRecords(f, "ftp", "www")
	const mark = "[examples.wasmctl.dev/dnsrecord]"
	c := e2e.Run(t, e2e.Example(t, "dnsrecord"), "-n", f.Ns, "-l", "team=a", "--socket", socket, "--kubeconfig", f.Cluster.Kubeconfig())
	enginetest.Until(t, "both have the finalizer", func() bool { return r.finalizers(t.Context()) == "ftp"+mark+" www"+mark })

	r.relabel("www", "b")
	enginetest.Until(t, "status counts it", func() bool { s, _ := strandedIn(t, socket); return s.Total == 1 })
	r.remove("www")
	if code, out := e2e.Refused(t, "release", socket, f.Ns+"/ftp"); code != 1 || !strings.Contains(out, "would add the finalizer again") {
		t.Errorf("release of a watched object: %d, %s", code, out)
	}
	if out := e2e.Steer(t, "release", socket, "--all", "--dry-run"); out != "would release "+f.Ns+"/www (its deletion was waiting)\n" {
		t.Errorf("release --dry-run printed %q", out)
	}
	if got := r.finalizers(t.Context()); got != "ftp"+mark+" www"+mark {
		t.Errorf("after --dry-run: %s", got)
	}
	s, state := strandedIn(t, socket)
	if want := "1 object stranded: " + f.Ns + "/www: "; s.Finalizer != strings.Trim(mark, "[]") || s.Objects[0].Object != f.Ns+"/www" || !strings.HasPrefix(state, want) {
		t.Errorf("status: %q, %+v", state, s)
	}
	if out := e2e.Steer(t, "explain", socket, "dnsrecord/www", "-n", f.Ns); !strings.Contains(out, "wasmctl release dnsrecord "+f.Ns+"/www") {
		t.Errorf("explain: %s", out)
	}
	if out := e2e.Steer(t, "release", socket, f.Ns+"/www"); out != "released "+f.Ns+"/www (its deletion was waiting)\n" {
		t.Errorf("release printed %q", out)
	}
	if got := r.finalizers(t.Context()); got != "ftp"+mark {
		t.Errorf("after the release: %s", got)
	}
	if code, out := e2e.Refused(t, "release", socket, f.Ns+"/www"); code != 1 || !strings.Contains(out, "nothing was released") {
		t.Errorf("a second release: %d, %s", code, out)
	}
	c.WantLine(`"level":"WARN"`, "does not watch it", `"object":"`+f.Ns+`/www"`)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestStranded_NamespacesThatLeaveTheListAreFoundAtTheStart: the next process lists the objects of all namespaces once. Without a process,
// release connects to the cluster itself.
func TestStranded_NamespacesThatLeaveTheListAreFoundAtTheStart(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	r := newRecords(f, "ftp", "www")
	const name = "examples.wasmctl.dev/dnsrecord"
	run := func(ns string) *e2e.Process {
		return e2e.Run(t, e2e.Example(t, "dnsrecord"), "-n", ns, "--socket", socket, "--kubeconfig", f.Cluster.Kubeconfig())
	}
	stop := func(c *e2e.Process) {
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
	}
	c := run(f.Ns)
	enginetest.Until(t, "both have the finalizer", func() bool { return r.finalizers(t.Context()) == "ftp["+name+"] www["+name+"]" })
	stop(c)
	c = run(devclustertest.Namespace(t, f.Cluster))
	c.WantLine(`"msg":"reconciling"`)
	enginetest.Until(t, "explain knows of the finalizer", func() bool {
		return strings.Contains(e2e.Steer(t, "explain", socket, "dnsrecord/ftp", "-n", f.Ns), "wasmctl release dnsrecord "+f.Ns+"/ftp")
	})
	if s, state := strandedIn(t, socket); s.Total != 0 || state != "ok" {
		t.Errorf("objects that another controller may finalize: %s, %+v", state, s)
	}
	if out := e2e.Steer(t, "release", socket, f.Ns+"/ftp"); out != "released "+f.Ns+"/ftp\n" {
		t.Errorf("release printed %q", out)
	}
	stop(c)

	direct := []string{"release", "--kubeconfig", f.Cluster.Kubeconfig(), "--for", "dnsrecords.examples.wasmctl.dev", "--finalizer", name, "-n", f.Ns}
	if code, out := e2e.Exec(t, nil, append(direct, "mistyped", "www")...); code != 1 || !strings.Contains(out, "nothing was released") {
		t.Errorf("release of a mistyped name and another one: %d, %s", code, out)
	}
	if out := e2e.Output(t, append(direct, "www", "--dry-run")...); out != "would release "+f.Ns+"/www\n" {
		t.Errorf("release --dry-run printed %q", out)
	}
	if out := e2e.Output(t, append(direct, "--all")...); out != "released "+f.Ns+"/www\n" {
		t.Errorf("release --all printed %q", out)
	}
	if got := r.finalizers(t.Context()); got != "ftp[] www[]" {
		t.Errorf("finalizers: %s", got)
	}
	if out := e2e.Output(t, append(direct, "--all")...); out != "no object has the finalizer\n" {
		t.Errorf("a second release --all printed %q", out)
	}
	direct[4] = "nothing.example.dev"
	if code, out := e2e.Exec(t, nil, append(direct, "--all")...); code != e2e.ExitKind {
		t.Errorf("an unknown kind: %d, %s", code, out)
	}
}
