// SPDX-License-Identifier: Apache-2.0

// Package scheme registers the Go types of kinds.
package scheme

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Builder collects the types of a group and version.
type Builder struct {
	GroupVersion schema.GroupVersion
	runtime.SchemeBuilder
}

// Register adds types.
func (b *Builder) Register(objects ...runtime.Object) *Builder {
	b.SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(b.GroupVersion, objects...)
		metav1.AddToGroupVersion(s, b.GroupVersion)
		return nil
	})
	return b
}

// RegisterAll adds the types of another Builder.
func (b *Builder) RegisterAll(other *Builder) *Builder {
	b.SchemeBuilder = append(b.SchemeBuilder, other.SchemeBuilder...)
	return b
}

// AddToScheme adds the types to a scheme.
func (b *Builder) AddToScheme(s *runtime.Scheme) error { return b.SchemeBuilder.AddToScheme(s) }

// Build returns a scheme of these types.
func (b *Builder) Build() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, b.AddToScheme(s)
}
