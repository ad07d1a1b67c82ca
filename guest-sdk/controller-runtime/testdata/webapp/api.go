// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	groupVersion  = schema.GroupVersion{Group: "apps.wasmctl.test", Version: "v1"}
	schemeBuilder = &scheme.Builder{GroupVersion: groupVersion}
	addToScheme   = schemeBuilder.AddToScheme
)

func init() { schemeBuilder.Register(&Site{}, &SiteList{}) }

// SiteSpec is the desired state.
type SiteSpec struct {
	Image    string `json:"image"`
	Replicas *int32 `json:"replicas,omitempty"`
}

// SiteStatus is the observed state.
type SiteStatus struct {
	ReadyReplicas int32              `json:"readyReplicas"`
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// Site runs a Deployment.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec,omitempty"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteList is a list.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if s.Spec.Replicas != nil {
		n := *s.Spec.Replicas
		c.Spec.Replicas = &n
	}
	c.Status.Conditions = nil
	for i := range s.Status.Conditions {
		c.Status.Conditions = append(c.Status.Conditions, *s.Status.Conditions[i].DeepCopy())
	}
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *SiteList) DeepCopyObject() runtime.Object {
	c := &SiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Site)) //nolint:forcetypeassert // a copy
	}
	return c
}
