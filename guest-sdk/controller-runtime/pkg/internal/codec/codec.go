// Package codec turns objects of Go into values of the host, and back.
package codec

import (
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Encode returns obj as a value that can be sent, with its kind.
func Encode(obj any, gvk schema.GroupVersionKind) (any, error) {
	m, err := Map(obj)
	if err != nil || gvk.Empty() {
		return m, err
	}
	out := make(map[string]any, len(m)+2)
	maps.Copy(out, m)
	out["apiVersion"], out["kind"] = gvk.ToAPIVersionAndKind()
	return out, nil
}

// Map returns obj as its JSON would be. Maps of an Unstructured are its own.
func Map(obj any) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return m, nil
}

// Decode replaces obj, which is a pointer, by what v holds.
func Decode(v wasmctl.Value, obj any) error {
	var m map[string]any
	if err := v.Decode(&m); err != nil {
		return fmt.Errorf("decode %T: %w", obj, err)
	}
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		obj.Object = m
		return nil
	case runtime.Unstructured:
		obj.SetUnstructuredContent(m)
		return nil
	case *metav1.PartialObjectMetadata:
		delete(m, "spec")
		delete(m, "status")
	}
	reflect.ValueOf(obj).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, obj); err != nil {
		return fmt.Errorf("decode %T: %w", obj, err)
	}
	return nil
}
