// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.devclustertest.wasmctl.dev}
spec:
  group: devclustertest.wasmctl.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - &v
    name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
  - {<<: *v, name: v0, served: false, storage: false}
---
# nothing but a comment
---
apiVersion: devclustertest.wasmctl.dev/v1
kind: Widget
metadata: {name: one}
spec: {size: %d}
`

// The second object's kind is defined by the first: the caller need not wait or retry.
func TestApply_KindsAndTheirObjectsInOneStream(t *testing.T) {
	c := Shared(t)
	ns := Namespace(t, c)
	path := filepath.Join(t.TempDir(), "widgets.yaml")
	crd, _, _ := strings.Cut(widgets, "---")
	if err := os.WriteFile(path, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "devclustertest.wasmctl.dev", Version: "v1", Resource: "widgets"}).Namespace(ns)
	for _, size := range []int64{1, 1 << 60} {
		applied := ApplyIn(t, c, ns, fmt.Appendf(nil, widgets, size))
		if len(applied) != 2 {
			t.Fatalf("%d objects applied, want 2", len(applied))
		}
		got, err := resource.Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "size"); n != size {
			t.Errorf("spec.size %d, want %d", n, size)
		}
	}
	if applied := ApplyFile(t, c, path); applied[0].GetKind() != "CustomResourceDefinition" {
		t.Errorf("from the file: %s", applied[0].GetKind())
	}
}

func TestApply_PutsObjectsWhereTheyBelong(t *testing.T) {
	c := Shared(t)
	ns := Namespace(t, c)
	applied := ApplyIn(t, c, ns, []byte(`{"kind": "List", "apiVersion": "v1", "items": [
		{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "here"}},
		{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "there-`+ns+`", "namespace": "default"}},
		{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "`+ns+`"}}]}`))
	var got []string
	for _, obj := range applied {
		got = append(got, obj.GetNamespace())
	}
	if want := []string{ns, "default", ""}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("namespaces %q, want %q", got, want)
	}
}

func TestApply_UnknownKindSaysWhatIsMissing(t *testing.T) {
	c := Shared(t)
	a := &applier{discovery: clientset(t, c.RESTConfig()).Discovery()}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "no.such/v1", "kind": "Thing"}}
	_, err := a.mapping(t.Context(), obj)
	if err == nil || !strings.Contains(err.Error(), "Thing") || !strings.Contains(err.Error(), "CustomResourceDefinition") {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestDecode_RefusesWhatIsNoObject(t *testing.T) {
	for _, text := range []string{"a: b", "- list", "text", "a: [", "kind: ConfigMap\n---\na: b"} {
		if objects, err := decode([]byte(text)); err == nil && len(objects) > 0 && objects[0].GetKind() == "" {
			t.Errorf("%q: %v, want an error", text, objects)
		} else if err == nil {
			t.Logf("%q: %v", text, objects)
			t.Errorf("%q: no error", text)
		}
	}
}

// Every object that decode accepts has a kind, and no input makes it panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(widgets))
	f.Add([]byte("---\n---\n"))
	f.Add([]byte(`{"kind":"List","items":[{"kind":"A"}, 3]}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		objects, err := decode(manifest)
		if err != nil {
			return
		}
		for _, obj := range objects {
			if obj.GetKind() == "" {
				t.Errorf("an object without a kind: %v", obj.Object)
			}
		}
	})
}
