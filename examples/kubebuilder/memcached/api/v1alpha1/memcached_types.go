// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemcachedSpec is the desired state.
type MemcachedSpec struct {
	// Size is the number of servers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +kubebuilder:default=1
	// +optional
	Size *int32 `json:"size,omitempty"`

	// ContainerPort is the port on which each server listens.
	// +kubebuilder:default=11211
	// +optional
	ContainerPort int32 `json:"containerPort,omitempty"`
}

// MemcachedStatus is the state that the controller has observed.
type MemcachedStatus struct {
	// Conditions contains Available, which reports whether the Deployment matches the spec, and
	// Degraded, which reports whether the servers are being removed.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// Memcached is a number of memcached servers.
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedSpec   `json:"spec,omitempty"`
	Status MemcachedStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// MemcachedList is a list of Memcacheds.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

func init() { SchemeBuilder.Register(&Memcached{}, &MemcachedList{}) }
