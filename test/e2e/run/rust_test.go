// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// rustWasm returns the example in Rust; without it the test is skipped.
func rustWasm(t *testing.T) string {
	t.Helper()
	file := filepath.Join("..", "..", "..", "bin", "examples", "configmapgenerator.rust.wasm")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("SKIPPED: the example in Rust is not built (make guests-rust): %v", err)
	}
	return file
}

// TestExamples_RustDoesWhatGoDoes runs the ConfigMapGenerator in Go in one namespace and
// the one in Rust in another, repeats each step in both, and compares each object with
// its twin: its fields and their managers.
func TestExamples_RustDoesWhatGoDoes(t *testing.T) {
	t.Parallel()
	rust, golang := rustWasm(t), e2e.Example(t, "configmapgenerator")
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	var twins [2]*twin
	for i, module := range []string{golang, rust} {
		twins[i] = &twin{t, client, devclustertest.Namespace(t, cluster)}
		twins[i].create()
		c := e2e.Run(t, module, "--name", "configmapgenerator", "-n", twins[i].ns, "--kubeconfig", cluster.Kubeconfig())
		defer func() {
			c.Signal(syscall.SIGTERM)
			c.WantExit(e2e.ExitOK)
		}()
	}
	for _, step := range []struct {
		name string
		do   func(*twin)
	}{
		{"created", func(*twin) {}},
		{"edited", (*twin).edit},
		{"a ConfigMap deleted, and one given up", (*twin).removeMaps},
		{"a generator deleted", (*twin).removeGenerator},
	} {
		var seen [2]map[string]any
		for i, w := range twins {
			step.do(w)
			seen[i] = w.settled()
		}
		t.Logf("%s: %d objects", step.name, len(seen[0]))
		if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
			t.Errorf("%s: Go (-) and Rust (+) differ:\n%s", step.name, diff)
		}
	}
}

// twin is a namespace in which one of the modules works.
type twin struct {
	t      *testing.T
	client dynamic.Interface
	ns     string
}

func (w *twin) objects(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.client.Resource(gvr).Namespace(w.ns)
}

func (w *twin) must(_ any, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create makes generators of all sorts, and a ConfigMap with another owner.
func (w *twin) create() {
	w.t.Helper()
	boss := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "boss"}}}
	boss, err := w.objects(e2e.ConfigMaps).Create(w.t.Context(), boss, metav1.CreateOptions{FieldManager: "them"})
	w.must(boss, err)
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"content": "theirs"},
		"metadata": map[string]any{"name": "taken", "ownerReferences": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": string(boss.GetUID()), "controller": true,
		}}},
	}}
	w.must(w.objects(e2e.ConfigMaps).Create(w.t.Context(), theirs, metav1.CreateOptions{FieldManager: "them"}))
	for name, content := range map[string]string{
		"plain": "hello, world", "empty": "", "unicode": "größe \u4e16\u754c \U0001f980\n\t\"'", "taken": "ours", "gone": "soon",
	} {
		e2e.CreateGenerator(w.t, w.client, w.ns, name, content)
	}
}

func (w *twin) edit() {
	w.t.Helper()
	for _, name := range []string{"plain", "unicode"} {
		gen, err := w.objects(e2e.Generators).Get(w.t.Context(), name, metav1.GetOptions{})
		w.must(gen, err)
		w.must(nil, unstructured.SetNestedField(gen.Object, "edited", "spec", "content"))
		w.must(w.objects(e2e.Generators).Update(w.t.Context(), gen, metav1.UpdateOptions{FieldManager: "user"}))
	}
}

func (w *twin) removeMaps() {
	w.t.Helper()
	w.must(nil, w.objects(e2e.ConfigMaps).Delete(w.t.Context(), "plain", metav1.DeleteOptions{}))
	w.must(nil, w.objects(e2e.ConfigMaps).Delete(w.t.Context(), "taken", metav1.DeleteOptions{}))
	w.must(w.objects(e2e.Generators).Patch(w.t.Context(), "taken", "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"look":"again"}}}`), metav1.PatchOptions{FieldManager: "user"}))
}

func (w *twin) removeGenerator() {
	w.t.Helper()
	w.must(nil, w.objects(e2e.Generators).Delete(w.t.Context(), "gone", metav1.DeleteOptions{}))
}

// settled waits until the module has done its work, and returns all objects without the
// values that depend on the namespace.
func (w *twin) settled() map[string]any {
	w.t.Helper()
	all := map[string]any{}
	enginetest.Until(w.t, w.ns+" has settled", func() bool {
		clear(all)
		done := true
		gens, err := w.objects(e2e.Generators).List(w.t.Context(), metav1.ListOptions{})
		w.must(gens, err)
		maps, err := w.objects(e2e.ConfigMaps).List(w.t.Context(), metav1.ListOptions{})
		w.must(maps, err)
		for _, m := range maps.Items {
			if m.GetName() == "kube-root-ca.crt" {
				continue // its time is not determined
			}
			all["ConfigMap "+m.GetName()] = plain(m.Object)
		}
		for _, g := range gens.Items {
			done = done && isDone(&g, all)
			all["generator "+g.GetName()] = plain(g.Object)
		}
		return done && all["ConfigMap gone"] == nil == (all["generator gone"] == nil)
	})
	return all
}

// isDone reports whether the ConfigMap and the status of a generator agree with its spec.
func isDone(gen *unstructured.Unstructured, all map[string]any) bool {
	observed, _, _ := unstructured.NestedInt64(gen.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(gen.Object, "status", "conditions")
	want, _, _ := unstructured.NestedString(gen.Object, "spec", "content")
	child, _ := all["ConfigMap "+gen.GetName()].(map[string]any)
	got, there, _ := unstructured.NestedString(child, "data", "content")
	if observed != gen.GetGeneration() || len(conditions) != 1 || !there {
		return false
	}
	ready, _ := conditions[0].(map[string]any)
	if got == "theirs" {
		return ready["reason"] == "NotOwned"
	}
	return got == want && ready["reason"] == "Applied"
}

// plain removes parts of a value that differ between any two runs: times, uids, versions and the
// namespace.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, e := range v {
			switch key {
			case "uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "time", "namespace":
				m[key] = "set"
				continue
			}
			if list, ok := e.([]any); ok && key == "managedFields" {
				e = byManager(list)
			}
			if strings.HasPrefix(key, `k:{"uid"`) { // the owner, in managedFields
				key = `k:{"uid"}`
			}
			m[key] = plain(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	}
	return v
}

// byManager sorts entries of managedFields. The API server sorts them by time, in
// seconds, so their order is not determined.
func byManager(entries []any) []any {
	key := func(entry any) string {
		e, _ := entry.(map[string]any)
		return fmt.Sprint(e["manager"], e["operation"], e["subresource"])
	}
	return slices.SortedFunc(slices.Values(entries), func(a, b any) int { return strings.Compare(key(a), key(b)) })
}
