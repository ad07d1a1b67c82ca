// SPDX-License-Identifier: Apache-2.0

package apiutil_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// The kind of a typed object comes from the scheme, and that of other objects
// from their fields. A type with several kinds names its own.
func TestGVKForObject_IsThatOfTheType(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	one, two := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "One"}, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Two"}
	scheme.AddKnownTypeWithName(one, &appsv1.Deployment{})
	scheme.AddKnownTypeWithName(two, &appsv1.Deployment{})
	says := metav1.TypeMeta{APIVersion: "g/v1", Kind: "Two"}
	for name, test := range map[string]struct {
		obj  runtime.Object
		want schema.GroupVersionKind // empty for an error
	}{
		"typed":              {&corev1.Pod{}, corev1.SchemeGroupVersion.WithKind("Pod")},
		"typed, says other":  {&corev1.Pod{TypeMeta: says}, corev1.SchemeGroupVersion.WithKind("Pod")},
		"not in the scheme":  {&appsv1.DaemonSet{}, schema.GroupVersionKind{}},
		"several":            {&appsv1.Deployment{}, schema.GroupVersionKind{}},
		"several, says one":  {&appsv1.Deployment{TypeMeta: says}, two},
		"metadata":           {&metav1.PartialObjectMetadata{TypeMeta: says}, two},
		"metadata, silent":   {&metav1.PartialObjectMetadata{}, schema.GroupVersionKind{}},
		"unstructured":       {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "g/v1", "kind": "Two"}}, two},
		"without a version":  {&unstructured.Unstructured{Object: map[string]any{"kind": "Two"}}, schema.GroupVersionKind{}},
		"unversioned":        {&metav1.Status{}, schema.GroupVersionKind{}},
		"list of metadata":   {&metav1.PartialObjectMetadataList{TypeMeta: says}, two},
		"unstructured, none": {&unstructured.Unstructured{}, schema.GroupVersionKind{}},
	} {
		got, err := apiutil.GVKForObject(test.obj, scheme)
		if got != test.want && err == nil || (err != nil) != test.want.Empty() {
			t.Errorf("%s: %v %v, want %v", name, got, err, test.want)
		}
	}
}

// The scope comes from the mapper, and a mapper without a scope is an error.
func TestIsGVKNamespaced_AsksTheMapper(t *testing.T) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Odd"), nil)
	for kind, want := range map[string]string{"Pod": "true", "Node": "false", "Odd": "error", "Other": "error"} {
		got := "error"
		if is, err := apiutil.IsGVKNamespaced(corev1.SchemeGroupVersion.WithKind(kind), m); err == nil {
			got = map[bool]string{true: "true", false: "false"}[is]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
	guess, err := apiutil.NewDynamicRESTMapper(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := apiutil.IsGVKNamespaced(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, guess); is || err != nil {
		t.Errorf("a ClusterRole: %v %v", is, err)
	}
}

// The error of a failed discovery wraps each of its errors.
func TestErrResourceDiscoveryFailed_IsEachOfItsErrors(t *testing.T) {
	one := errors.New("one")
	var err error = &apiutil.ErrResourceDiscoveryFailed{corev1.SchemeGroupVersion: one}
	var as *apiutil.ErrResourceDiscoveryFailed
	if !errors.Is(err, one) || !errors.As(err, &as) {
		t.Error(err)
	}
}
