// Package codec turns objects of Go into values of the host, and back.
package codec

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Encode returns obj as a value that can be sent, with its kind.
func Encode(obj any, gvk schema.GroupVersionKind) (any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		obj = u.UnstructuredContent()
	}
	v, err := wasmctl.NewValue(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	if gvk.Empty() {
		return v, nil
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return v, errors.Join(v.Set(apiVersion, "apiVersion"), v.Set(kind, "kind"))
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
	if u, ok := obj.(runtime.Unstructured); ok {
		var m map[string]any
		if err := v.Decode(&m); err != nil {
			return fmt.Errorf("decode %T: %w", obj, err)
		}
		u.SetUnstructuredContent(m)
		return nil
	}
	reflect.ValueOf(obj).Elem().SetZero()
	if err := v.Decode(obj); err != nil {
		return fmt.Errorf("decode %T: %w", obj, err)
	}
	return nil
}
