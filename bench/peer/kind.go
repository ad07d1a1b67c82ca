// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is a kind to reconcile: a built-in one, whose typed clients use protobuf, or a custom resource, which always uses JSON.
type kind struct {
	gvk    schema.GroupVersionKind
	object func() client.Object
	list   func() client.ObjectList
}

var generatorVersion = schema.GroupVersion{Group: "examples.wasmctl.dev", Version: "v1"}

var kinds = map[string]kind{
	"configmaps": {
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		func() client.Object { return &corev1.ConfigMap{} }, func() client.ObjectList { return &corev1.ConfigMapList{} },
	},
	"pods": {
		corev1.SchemeGroupVersion.WithKind("Pod"),
		func() client.Object { return &corev1.Pod{} }, func() client.ObjectList { return &corev1.PodList{} },
	},
	"configmapgenerators": {
		generatorVersion.WithKind("ConfigMapGenerator"),
		func() client.Object { return &ConfigMapGenerator{} }, func() client.ObjectList { return &ConfigMapGeneratorList{} },
	},
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(generatorVersion, &ConfigMapGenerator{}, &ConfigMapGeneratorList{})
	metav1.AddToGroupVersion(scheme, generatorVersion)
	return scheme, corev1.AddToScheme(scheme)
}

// ConfigMapGenerator is the kind of examples/configmapgenerator.
type ConfigMapGenerator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// Spec is the specification of a ConfigMapGenerator.
type Spec struct {
	Content string `json:"content"`
}

// Status is the status of a ConfigMapGenerator.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (g *ConfigMapGenerator) DeepCopyObject() runtime.Object {
	c := &ConfigMapGenerator{TypeMeta: g.TypeMeta, Spec: g.Spec, Status: g.Status}
	g.DeepCopyInto(&c.ObjectMeta)
	if g.Status.Conditions != nil {
		c.Status.Conditions = make([]metav1.Condition, len(g.Status.Conditions))
		for i := range g.Status.Conditions {
			g.Status.Conditions[i].DeepCopyInto(&c.Status.Conditions[i])
		}
	}
	return c
}

// ConfigMapGeneratorList is a list of ConfigMapGenerators.
type ConfigMapGeneratorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []ConfigMapGenerator `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ConfigMapGeneratorList) DeepCopyObject() runtime.Object {
	c := &ConfigMapGeneratorList{TypeMeta: l.TypeMeta, Items: make([]ConfigMapGenerator, len(l.Items))}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*ConfigMapGenerator)
	}
	return c
}
