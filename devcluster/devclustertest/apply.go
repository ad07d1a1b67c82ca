// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/wasmctl/wasmctl/devcluster"
)

// FieldManager owns the fields that Apply sets.
const FieldManager = "devclustertest"

// How long to wait for a kind to appear in discovery, and for a new one to be served.
const (
	mappingLimit = 5 * time.Second
	servedLimit  = 2 * time.Minute
)

// Apply creates or updates the objects of a YAML stream by server-side apply, in order; it returns them as the API server responded.
// Objects of namespaced kinds without a namespace are put into "default": see ApplyIn.
//
// After a CustomResourceDefinition, it waits until its kind is established, in discovery, and can be listed. The API server delays creating
// (not applying) an object of such a kind by two more seconds. Nothing is deleted when the test ends: objects in a Namespace are deleted
// with it, and a CRD may be in use by others.
func Apply(t testing.TB, c *devcluster.Cluster, manifest []byte) []*unstructured.Unstructured {
	t.Helper()
	return ApplyIn(t, c, metav1.NamespaceDefault, manifest)
}

// ApplyFile is like Apply, for the contents of a file.
func ApplyFile(t testing.TB, c *devcluster.Cluster, path string) []*unstructured.Unstructured {
	t.Helper()
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return Apply(t, c, manifest)
}

// ApplyIn is like Apply, with another default namespace.
func ApplyIn(t testing.TB, c *devcluster.Cluster, namespace string, manifest []byte) []*unstructured.Unstructured {
	t.Helper()
	objects, err := decode(manifest)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatalf("apply: client: %v", err)
	}
	a := &applier{client: client, discovery: clientset(t, c.RESTConfig()).Discovery(), namespace: namespace}
	applied := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		got, err := a.apply(t.Context(), obj)
		if err != nil {
			t.Fatalf("apply: %s[%s]: %v", obj.GetKind(), obj.GetName(), err)
		}
		applied = append(applied, got)
	}
	return applied
}

// decode parses the objects of a YAML stream. It skips empty documents, and expands lists (kind List).
func decode(manifest []byte) ([]*unstructured.Unstructured, error) {
	docs := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(manifest))
	var objects []*unstructured.Unstructured
	for n := 1; ; n++ {
		var text json.RawMessage
		obj, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		err := docs.Decode(&text)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err == nil && (len(text) == 0 || string(text) == "null"):
			continue
		case err == nil:
			err = obj.UnmarshalJSON(text)
		}
		if err == nil && obj.IsList() {
			list, err = obj.ToList()
		} else {
			objects = append(objects, obj)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
}

// applier applies objects one after the other.
type applier struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	namespace string          // for objects without a namespace
	mapper    meta.RESTMapper // nil if discovery must be read again
}

func (a *applier) apply(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if obj.GetName() == "" {
		return nil, errors.New("no metadata.name")
	}
	mapping, err := a.mapping(ctx, obj)
	if err != nil {
		return nil, err
	}
	resources := a.client.Resource(mapping.Resource)
	var in dynamic.ResourceInterface = resources
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(a.namespace)
		}
		in = resources.Namespace(obj.GetNamespace())
	}
	applied, err := in.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		return nil, err
	}
	if mapping.GroupVersionKind.Kind == "CustomResourceDefinition" {
		a.mapper = nil // a kind was added
		return a.awaitServed(ctx, applied)
	}
	return applied, nil
}

// mapping finds the resource of the object's kind. Discovery may lag behind, so it retries if the kind is unknown.
func (a *applier) mapping(ctx context.Context, obj *unstructured.Unstructured) (mapping *meta.RESTMapping, err error) {
	gvk := obj.GroupVersionKind()
	err = poll(ctx, 100*time.Millisecond, mappingLimit, func(context.Context) error {
		if a.mapper == nil {
			groups, err := restmapper.GetAPIGroupResources(a.discovery)
			if err != nil {
				return err
			}
			a.mapper = restmapper.NewDiscoveryRESTMapper(groups)
		}
		var err error
		if mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			a.mapper = nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: apply its CustomResourceDefinition first", err)
	}
	return mapping, nil
}
