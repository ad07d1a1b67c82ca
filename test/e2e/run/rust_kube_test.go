// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

const documents = "examples.wasmctl.dev/v1/documents"

// startKube runs a module that is written with the API of kube-rs, in a namespace of its own.
func startKube(t *testing.T, name, crd string) (l *scenario, ns string) {
	t.Helper()
	file := filepath.Join("..", "..", "..", "bin", "examples", name+".rust.wasm")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("SKIPPED: the example is not built (make guests-rust): %v", err)
	}
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, crd)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns = devclustertest.Namespace(t, cluster)
	c := e2e.Run(t, file, "--name", name+"-"+ns, "-n", ns, "--grant-manifest", "--kubeconfig", cluster.Kubeconfig())
	t.Cleanup(func() {
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
	})
	return &scenario{t, cluster, client}, ns
}

func (l *scenario) create(r ref, kind string, spec map[string]any) {
	l.t.Helper()
	objects, name := l.objects(r)
	_, err := objects.Create(l.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": e2e.Generators.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestKubeRs_AGeneratorHasItsConfigMap is the example of kube-rs' controllers, on
// the API of its crate.
func TestKubeRs_AGeneratorHasItsConfigMap(t *testing.T) {
	t.Parallel()
	l, ns := startKube(t, "kube-configmapgenerator", "../../../examples/configmapgenerator/crd.yaml")
	gen, cm := ref{"examples.wasmctl.dev/v1/configmapgenerators", ns + "/hello"}, ref{"v1/configmaps", ns + "/hello"}
	l.create(gen, "ConfigMapGenerator", map[string]any{"content": "hello, world"})
	l.wants(cm, "hello, world", "data", "content")
	l.wants(gen, "1", "status", "observedGeneration")
	l.merge(gen, `{"spec":{"content":"bye"}}`)
	l.wants(cm, "bye", "data", "content")
	l.wants(gen, "2", "status", "observedGeneration")
	l.delete(cm)
	l.wants(cm, "bye", "data", "content")
	l.delete(gen)
	l.gone(cm)
}

// TestKubeRs_AFinalizerAndEventsWork follows an object from its finalizer to the end of
// its cleanup, with another finalizer on it.
func TestKubeRs_AFinalizerAndEventsWork(t *testing.T) {
	t.Parallel()
	l, ns := startKube(t, "kube-document", "../../../examples/rust/kube-document/crd.json")
	doc, cm := ref{documents, ns + "/letter"}, ref{"v1/configmaps", ns + "/" + ns + ".letter"}
	l.create(doc, "Document", map[string]any{"text": "dear all", "publishIn": ns})
	l.wants(cm, "dear all", "data", "text")
	l.wants(doc, "[examples.wasmctl.dev/published]", "metadata", "finalizers")
	l.wants(doc, "true", "status", "published")
	// Each module has the right to the status, but only with field managers of the controller.
	if name := "wasmctl/kube-document-" + ns + "/documents"; !isManager(l.get(doc), name) {
		t.Errorf("the status is not written by %s: %v", name, l.get(doc).GetManagedFields())
	}
	l.event(doc, "Published")
	l.delete(cm) // the mapper finds the document of a ConfigMap
	l.wants(cm, "dear all", "data", "text")
	l.merge(doc, `{"spec":{"hidden":true}}`)
	l.gone(cm)
	l.merge(doc, `{"spec":{"hidden":false,"text":"forbidden"}}`)
	l.event(doc, "Forbidden")
	l.merge(doc, `{"spec":{"text":"dear all"},"metadata":{"finalizers":["example.com/other","examples.wasmctl.dev/published"]}}`)
	l.there(cm)
	l.delete(doc)
	l.gone(cm)
	l.wants(doc, "[example.com/other]", "metadata", "finalizers")
	l.event(doc, "Withdrawn")
	l.merge(doc, `{"metadata":{"finalizers":null}}`)
	l.gone(doc)
}

func isManager(obj *unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == name })
}

// event waits for an event about an object with this reason.
func (l *scenario) event(r ref, reason string) {
	l.t.Helper()
	ns, name, _ := strings.Cut(r.name, "/")
	events, _ := l.objects(ref{"events.k8s.io/v1/events", ns + "/"})
	enginetest.Until(l.t, "the event "+reason, func() bool {
		list, err := events.List(l.t.Context(), metav1.ListOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range list.Items {
			about, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			why, _, _ := unstructured.NestedString(e.Object, "reason")
			if about == name && why == reason {
				return true
			}
		}
		return false
	})
}
