// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// widgets is the test's own kind, on the shared API server.
type widgets struct {
	*testing.T
	group, namespace string
	client           dynamic.Interface
	crds             things
}

func newWidgets(t *testing.T) *widgets {
	t.Helper()
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	return &widgets{t, ns + ".watcher.test", ns, client, things{TB: t, ResourceInterface: client.Resource(crds)}}
}

func (w *widgets) version(v string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.group, Version: v, Resource: "widgets"}
}

func (w *widgets) observe(v string) *witness {
	w.Helper()
	cfg := devclustertest.Shared(w.T).RESTConfig()
	return observe(w.T, cfg, watcher.Source{Resource: w.version(v), Namespace: w.namespace})
}

func (w *widgets) objects(v string) things {
	return things{w.T, w.client.Resource(w.version(v)).Namespace(w.namespace), w.group + "/" + v, "Widget"}
}

// crd returns the definition, with v1 and v2 served or not. v2 is stored.
func (w *widgets) crd(v1, v2 bool) *unstructured.Unstructured {
	version := `{"name":"v%d","served":%t,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	text := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"widgets.GROUP"},"spec":{"group":"GROUP","scope":"Namespaced",
		"names":{"plural":"widgets","singular":"widget","kind":"Widget"},"versions":[`+version+`,`+version+`]}}`, 1, v1, false, 2, v2, true)
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(strings.ReplaceAll(text, "GROUP", w.group))); err != nil {
		w.Fatal(err)
	}
	return u
}

// serve changes which versions are served.
func (w *widgets) serve(v1, v2 bool) {
	w.Helper()
	u := w.crd(v1, v2)
	now, err := w.crds.Get(w.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	u.SetResourceVersion(now.GetResourceVersion())
	if _, err := w.crds.Update(w.Context(), u, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// Rule 13: a watch of a missing kind waits for its CRD. When the CRD is deleted, its objects are deleted, and the watch
// waits for another one; an object created later under the same name is a different object. A watch of another kind is
// not affected.
func TestReal_CRDArrivesGoesAndComesBack(t *testing.T) {
	k := newWidgets(t)
	w := k.observe("v1")
	other := observe(t, devclustertest.Shared(t).RESTConfig(), watcher.Source{Resource: configMaps, Namespace: k.namespace})
	other.phase(watcher.Ready)
	if st := w.phase(watcher.Absent); !strings.Contains(st.String(), "no widgets."+k.group) {
		t.Errorf("state: %s", st)
	}
	var uids []string
	for range 2 {
		k.crds.make(k.crd(true, true))
		w.phase(watcher.Ready)
		k.objects("v1").create("w")
		w.expect("Applied w")
		u, err := k.objects("v1").Get(t.Context(), "w", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		uids = append(uids, string(u.GetUID()))
		k.objects("v1").agrees(w.sub.Store())
		k.crds.remove(k.crd(true, true).GetName())
		w.expect("Deleted w")
		w.phase(watcher.Absent)
		if n := w.sub.Store().Len(); n != 0 {
			t.Errorf("%d objects without their CRD", n)
		}
	}
	if uids[0] == uids[1] {
		t.Error("the second object is the first")
	}
	if n := len(other.states); n != 0 {
		t.Errorf("the other watch has changed its phase: %v", <-other.states)
	}
}

// Rule 13: a version that is no longer served is absent, and its store keeps its content: the objects still exist. The
// other version is not affected for long. When it is served again, the watch sees the missed changes, and only those.
func TestReal_VersionOfAKindComesAndGoes(t *testing.T) {
	k := newWidgets(t)
	k.crds.make(k.crd(true, true))
	v1, v2 := k.observe("v1"), k.observe("v2")
	v1.phase(watcher.Ready)
	v2.phase(watcher.Ready)
	k.objects("v1").create("same", "changed", "gone")
	v1.expect("Applied same", "Applied changed", "Applied gone")
	v2.expect("Applied same", "Applied changed", "Applied gone")

	k.serve(false, true)
	v1.phase(watcher.Absent)
	if n := v1.sub.Store().Len(); n != 3 {
		t.Errorf("the store has %d objects, want the 3 from before", n)
	}
	k.objects("v2").label("changed", "1")
	k.objects("v2").remove("gone")
	k.objects("v2").create("new")
	seen := map[string]bool{} // as changes or through a list: the API server may end the watch
	for _, ev := range v2.before(k.objects("v2")) {
		seen[strings.Fields(ev)[1]] = true
	}
	if len(seen) != 3 || seen["same"] {
		t.Errorf("v2 has events about %v, want changed, gone and new", seen)
	}
	k.objects("v2").agrees(v2.sub.Store())

	k.serve(true, true)
	v1.phase(watcher.Ready)
	for _, ev := range v1.before(k.objects("v1")) {
		if strings.HasSuffix(ev, " same") {
			t.Errorf("%s, which did not change", ev)
		}
	}
	k.objects("v1").agrees(v1.sub.Store())
}
