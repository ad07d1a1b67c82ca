// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// typed converts obj, any value with the JSON of an object, to the Go type of
// its kind. The result shares no memory with obj.
func (s *server) typed(gvk schema.GroupVersionKind, obj any) (runtime.Object, error) {
	content, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	into, err := s.own.New(gvk)
	if err != nil {
		return nil, err
	}
	if u, ok := into.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return u, nil
	}
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok && !s.given.Recognizes(gvk) {
		return &unstructured.Unstructured{Object: content}, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("%s as %T: %w", gvk.Kind, into, err)
	}
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return into, nil
}

// contentOf returns the JSON of an object as a map. It shares no memory with
// the object.
func contentOf(obj any) (map[string]any, error) {
	switch o := obj.(type) {
	case map[string]any:
		return runtime.DeepCopyJSON(o), nil
	case runtime.Unstructured:
		return runtime.DeepCopyJSON(o.UnstructuredContent()), nil
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	return content, utiljson.Unmarshal(text, &content)
}

// stored returns the object that the request names.
func (s *server) stored(r *request) (map[string]any, error) {
	obj, err := s.tracker.Get(r.resource(), r.namespace, r.name)
	if err != nil {
		return nil, err
	}
	return contentOf(obj)
}

// shown returns an object in the form of an answer.
func (s *server) shown(gvk schema.GroupVersionKind, content map[string]any) map[string]any {
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	if !s.showManaged {
		delete(metadata(content), "managedFields")
		return content
	}
	list, _ := metadata(content)["managedFields"].([]any)
	for _, entry := range list {
		showManager(entry)
	}
	return content
}

// metadata returns the metadata of an object. It creates the map if there is
// none.
func metadata(obj map[string]any) map[string]any {
	m, ok := obj["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj["metadata"] = m
	}
	return m
}

// text returns the string at the path, or "".
func text(v any, path ...string) string {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	s, _ := v.(string)
	return s
}

// finalizers returns the finalizers of an object.
func finalizers(obj map[string]any) []any {
	list, _ := metadata(obj)["finalizers"].([]any)
	return list
}
