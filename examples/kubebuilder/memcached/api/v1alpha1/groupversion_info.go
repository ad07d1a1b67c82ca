// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the kinds of the group cache.example.dev, version v1alpha1.
// +kubebuilder:object:generate=true
// +groupName=cache.example.dev
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the group and version of the kinds of this package.
	GroupVersion = schema.GroupVersion{Group: "cache.example.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the kinds.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion} //nolint:staticcheck // most projects have it

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
