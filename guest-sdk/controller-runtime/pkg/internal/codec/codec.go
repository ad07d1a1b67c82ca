// SPDX-License-Identifier: Apache-2.0

// Package codec converts Go objects to values of the host, and back.
package codec

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
)

// Body returns the value to send for obj. Until restore is called, the kind of
// a typed object is set, because programs seldom set it, and the namespace of a
// cluster-scoped object is cleared, because the real API server ignores it.
func Body(obj runtime.Object, gvk schema.GroupVersionKind) (body any, restore func()) {
	back := func() {}
	if o, ok := obj.(metav1.Object); ok && o.GetNamespace() != "" && kinds.ClusterScoped(gvk.GroupKind()) {
		namespace := o.GetNamespace()
		o.SetNamespace("")
		back = func() { o.SetNamespace(namespace) }
	}
	kind := obj.GetObjectKind()
	said := kind.GroupVersionKind()
	if u, ok := obj.(runtime.Unstructured); ok && said == gvk {
		return u.UnstructuredContent(), back
	}
	kind.SetGroupVersionKind(gvk)
	return Plain(obj), func() {
		kind.SetGroupVersionKind(said)
		back()
	}
}

// Plain returns the value to send for obj, unchanged.
func Plain(obj any) any {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent()
	}
	return obj
}

// Decode replaces obj, which is a pointer, by the object in v. It returns an
// error if v has no object.
func Decode(v wasmctl.Object, obj any) error {
	if v.Type() != wasmctl.TypeMap {
		return fmt.Errorf("decode %T: the answer of the host has no object", obj)
	}
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

// SetKind sets the kind of obj. Unlike SetGroupVersionKind, it does not build
// the apiVersion string again.
func SetKind(obj runtime.Object, apiVersion, kind string) {
	switch of := obj.GetObjectKind().(type) {
	case *metav1.TypeMeta:
		of.APIVersion, of.Kind = apiVersion, kind
	default:
		of.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	}
}

// RefTo returns a reference to an object. It drops the namespace of a
// cluster-scoped object, as the real client does.
func RefTo(gvk schema.GroupVersionKind, namespace, name string) wasmctl.ObjectRef {
	if kinds.ClusterScoped(gvk.GroupKind()) {
		namespace = ""
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

// RefOf returns the reference of an object to send.
func RefOf(body any) (wasmctl.ObjectRef, error) {
	v, err := wasmctl.NewValue(body)
	if err != nil {
		return wasmctl.ObjectRef{}, fmt.Errorf("encode %T: %w", body, err)
	}
	return wasmctl.Object{Value: v}.Ref(), nil
}
