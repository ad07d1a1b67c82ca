// SPDX-License-Identifier: Apache-2.0

// Package apiutil has helper functions for kinds.
package apiutil

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToProtobufScheme has no effect, because a module exchanges msgpack with
// its host.
func AddToProtobufScheme(func(*runtime.Scheme) error) error { return nil }

// GVKForObject returns the kind of obj. Metadata and unstructured objects have
// it in their fields; for other objects, scheme maps the Go type to the kind.
// It returns an error if there is no kind, or more than one.
func GVKForObject(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return ownKind(o)
	case runtime.Unstructured:
		return ownKind(o)
	}
	kinds, unversioned, err := scheme.ObjectKinds(obj)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("%w; call AddToScheme of its package in main", err)
	case unversioned:
		return schema.GroupVersionKind{}, fmt.Errorf("object[%T]: its type has no version", obj)
	case len(kinds) == 1:
		return kinds[0], nil
	case len(kinds) == 0:
		return schema.GroupVersionKind{}, fmt.Errorf("object[%T]: its type has no kind in the scheme", obj)
	}
	// A type with several registered kinds may name its own kind.
	if own := obj.GetObjectKind().GroupVersionKind(); slices.Contains(kinds, own) {
		return own, nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("object[%T]: its type has several kinds: %v; set its TypeMeta", obj, kinds)
}

func ownKind(obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		return gvk, fmt.Errorf("object[%T]: has no kind; set it with SetGroupVersionKind", obj)
	}
	if gvk.Version == "" {
		return gvk, fmt.Errorf("object[%T]: its kind has no version; set it with SetGroupVersionKind", obj)
	}
	return gvk, nil
}

// IsObjectNamespaced reports whether objects of obj's kind have a namespace.
func IsObjectNamespaced(obj runtime.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) (bool, error) {
	gvk, err := GVKForObject(obj, scheme)
	if err != nil {
		return false, err
	}
	return IsGVKNamespaced(gvk, mapper)
}

// IsGVKNamespaced reports whether objects of a kind have a namespace.
func IsGVKNamespaced(gvk schema.GroupVersionKind, mapper meta.RESTMapper) (bool, error) {
	m, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, fmt.Errorf("kind[%s]: %w", gvk.Kind, err)
	}
	switch {
	case m == nil || m.Scope == nil || reflect.ValueOf(m.Scope).IsZero():
		return false, fmt.Errorf("kind[%s]: its scope is unknown", gvk.Kind)
	case m.Scope.Name() == "":
		return false, errors.New("kind[" + gvk.Kind + "]: its scope is empty")
	}
	return m.Scope.Name() != meta.RESTScopeNameRoot, nil
}
