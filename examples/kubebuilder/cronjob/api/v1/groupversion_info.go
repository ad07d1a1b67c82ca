// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the kinds of the group batch.example.dev, version v1.
// +kubebuilder:object:generate=true
// +groupName=batch.example.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the kinds of this package.
	GroupVersion = schema.GroupVersion{Group: "batch.example.dev", Version: "v1"}

	// SchemeBuilder collects the kinds for AddToScheme.
	SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, &CronJob{}, &CronJobList{})
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
