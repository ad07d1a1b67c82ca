// SPDX-License-Identifier: Apache-2.0

package tenants_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// waitLimit bounds each wait for one object.
const waitLimit = 4 * time.Minute

var reconcilers = v1alpha1.GVR(v1alpha1.KindNamespaced)

// tenant is a namespace whose service accounts have all rights in it.
type tenant struct {
	*testing.T

	ns     string
	client dynamic.Interface
}

func newTenant(t *testing.T, cluster *devcluster.Cluster) *tenant {
	t.Helper()
	out := &tenant{T: t, ns: devclustertest.Namespace(t, cluster), client: dynamic.NewForConfigOrDie(cluster.RESTConfig())}
	devclustertest.ApplyIn(t, cluster, out.ns, fmt.Appendf(nil, `
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: all}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: all},
 subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:serviceaccounts:%s"}]}
`, out.ns))
	return out
}

func (t *tenant) must(err error) {
	t.Helper()
	if err != nil && t.Context().Err() == nil {
		t.Error(err)
	}
}

func (t *tenant) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return t.client.Resource(r).Namespace(t.ns)
}

// object returns an object with a label.
func object(apiVersion, kind, name, label string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	maps.Copy(o.Object, fields)
	o.SetName(name)
	o.SetLabels(map[string]string{label: "true"})
	return o
}

// create creates a Reconciler.
func (t *tenant) create(ctx context.Context, name, label string, spec map[string]any) error {
	_, err := t.in(reconcilers).Create(ctx, object("wasmctl.dev/v1alpha1", "Reconciler", name, label, map[string]any{"spec": spec}), metav1.CreateOptions{})
	return err
}

// configMap stores a ConfigMap.
func (t *tenant) configMap(name, label string, fields map[string]any) {
	t.Helper()
	_, err := t.in(e2e.ConfigMaps).Apply(t.Context(), name, object("v1", "ConfigMap", name, label, fields), metav1.ApplyOptions{FieldManager: "test", Force: true})
	t.must(err)
}

// module stores a module in a ConfigMap, and returns its reference. Each part is compressed.
func (t *tenant) module(name, label string, parts ...[]byte) map[string]any {
	t.Helper()
	packed := bytes.Join(parts, nil)
	t.configMap(name, label, map[string]any{"binaryData": map[string]any{"m": base64.StdEncoding.EncodeToString(packed)}})
	return ref(name)
}

// ref returns the reference of a module.
func ref(name string) map[string]any {
	return map[string]any{"configMapKeyRef": map[string]any{"name": name, "key": "m"}}
}

func compressed(part []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(part) // to memory
	_ = w.Close()
	return b.Bytes()
}

// patch changes an object.
func (t *tenant) patch(ctx context.Context, r schema.GroupVersionResource, name string, patch map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return t.in(r).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
}

// read reads a Reconciler.
func read(o *unstructured.Unstructured) (r v1alpha1.Reconciler) {
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r) // the API server has validated it
	return r
}

// hasReason reports whether Ready of the newest generation of a Reconciler has a reason.
func hasReason(o *unstructured.Unstructured, reason string) bool {
	r := read(o)
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready)
	return c != nil && c.Reason == reason && c.ObservedGeneration == r.Generation
}

// until waits until an object has a state, or fails the test.
func (t *tenant) until(r schema.GroupVersionResource, name, what string, ok func(*unstructured.Unstructured) bool) {
	t.Helper()
	enginetest.Until(t, name+": "+what, func() bool {
		o, err := t.in(r).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && ok(o)
	})
}

// watched is an object whose states are waited for.
type watched struct {
	resource dynamic.ResourceInterface
	name     string
	stream   watch.Interface // nil if it has ended
}

// until waits until the object has a state.
func (w *watched) until(ctx context.Context, ok func(*unstructured.Unstructured) bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for ctx.Err() == nil {
		if w.stream == nil {
			stream, err := w.resource.Watch(context.WithoutCancel(ctx), metav1.ListOptions{FieldSelector: "metadata.name=" + w.name})
			if err != nil {
				e2e.Pause(ctx, 100*time.Millisecond)
				continue
			}
			w.stream = stream
		}
		select {
		case e, open := <-w.stream.ResultChan():
			if o, is := e.Object.(*unstructured.Unstructured); open && is {
				if ok(o) {
					return nil
				}
				continue
			}
			w.close()
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%s: %w", w.name, context.Cause(ctx))
}

func (w *watched) close() {
	if w.stream != nil {
		w.stream.Stop()
		w.stream = nil
	}
}
