// Package kinds finds out which kind an object is of.
package kinds

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Of returns the kind of obj. It is what the object says where its type does
// not, and else what the scheme says of the type.
func Of(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		gvk := obj.GetObjectKind().GroupVersionKind()
		if gvk.Kind == "" {
			return gvk, runtime.NewMissingKindErr("unstructured object has no kind")
		}
		if gvk.Version == "" {
			return gvk, runtime.NewMissingVersionErr("unstructured object has no version")
		}
		return gvk, nil
	}
	gvks, unversioned, err := scheme.ObjectKinds(obj)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("%w; call AddToScheme of its package in main", err)
	case unversioned:
		return schema.GroupVersionKind{}, fmt.Errorf("type %T has no version, and is no object of a cluster", obj)
	case len(gvks) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("type %T is of %d kinds (%v); register a type of its own for each", obj, len(gvks), gvks)
	}
	return gvks[0], nil
}

// OfItems returns the kind of the items of a list.
func OfItems(list runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := Of(list, scheme)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}
