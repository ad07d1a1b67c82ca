// Package codec turns objects of Go into values of the host, and back.
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

// Body returns what is sent of obj. The kind of a typed object is set until
// restore is called: programs seldom set it. A namespace of an object that has none is left
// out until then, as the real API server does.
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

// Plain returns what is sent of obj as it is.
func Plain(obj any) any {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent()
	}
	return obj
}

// Decode replaces obj, which is a pointer, by what v holds. What holds no object
// is an error.
func Decode(v wasmctl.Object, obj any) error {
	if v.Type() != wasmctl.TypeMap {
		return fmt.Errorf("decode %T: the host answered no object", obj)
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

// SetKind is SetGroupVersionKind of the object's kind, which would make the text of group
// and version once more.
func SetKind(obj runtime.Object, apiVersion, kind string) {
	switch of := obj.GetObjectKind().(type) {
	case *metav1.TypeMeta:
		of.APIVersion, of.Kind = apiVersion, kind
	default:
		of.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	}
}

// RefTo names an object. Programs may pass a namespace of an object that has none: the real
// client leaves it out.
func RefTo(gvk schema.GroupVersionKind, namespace, name string) wasmctl.ObjectRef {
	if kinds.ClusterScoped(gvk.GroupKind()) {
		namespace = ""
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

// RefOf returns the name that an object to send has.
func RefOf(body any) (wasmctl.ObjectRef, error) {
	v, err := wasmctl.NewValue(body)
	if err != nil {
		return wasmctl.ObjectRef{}, fmt.Errorf("encode %T: %w", body, err)
	}
	return wasmctl.Object{Value: v}.Ref(), nil
}
