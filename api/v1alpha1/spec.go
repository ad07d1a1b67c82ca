// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 defines the configuration of a controller, once for all front ends: the
// library accepts a ControllerSpec, the file of wasmctl run -f is a list of it, and flags
// fill it. Its part CommonSpec is also in the spec of the kinds that wasmctl serve runs:
// Reconciler, whose module acts only in the namespace of the Reconciler, and
// ClusterReconciler. The package has the defaults and the validation of all of them;
// crds.yaml is generated from the types (make crds).
//
// +groupName=wasmctl.dev
// +versionName=v1alpha1
// +kubebuilder:object:generate=false
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version are the API group and version of the kinds.
const (
	Group   = "wasmctl.dev"
	Version = "v1alpha1"
)

// GVR returns the resource of a kind, "Reconciler" or "ClusterReconciler".
func GVR(kind string) schema.GroupVersionResource {
	gvr := schema.GroupVersionResource{Group: Group, Version: Version, Resource: "reconcilers"}
	if kind == KindCluster {
		gvr.Resource = "clusterreconcilers"
	}
	return gvr
}

// The kinds.
const (
	KindNamespaced = "Reconciler"
	KindCluster    = "ClusterReconciler"
)

// Reconciler runs a module that reconciles objects in the namespace of the Reconciler. The
// module has the rights of a service account of this namespace, within the grant, and
// cannot access other namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rec,categories=wasmctl
// +kubebuilder:printcolumn:name="For",type=string,JSONPath=`.status.for`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.live.version`
// +kubebuilder:printcolumn:name="Candidate",type=string,JSONPath=`.status.candidate.version`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects.watched`
// +kubebuilder:printcolumn:name="Failing",type=integer,JSONPath=`.status.objects.failing`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.status.live.digest`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name may have 52 characters"
type Reconciler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReconcilerSpec `json:"spec"`
	// +kubebuilder:default={observedGeneration:-1}
	Status Status `json:"status,omitempty"`
}

// ClusterReconciler runs a module that may access more than one namespace, within the grant
// and the rights of the service account that it names.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crec,categories=wasmctl
// +kubebuilder:printcolumn:name="For",type=string,JSONPath=`.status.for`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.live.version`
// +kubebuilder:printcolumn:name="Candidate",type=string,JSONPath=`.status.candidate.version`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects.watched`
// +kubebuilder:printcolumn:name="Failing",type=integer,JSONPath=`.status.objects.failing`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.status.live.digest`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')",message="the name may have 52 characters, and no dot"
type ClusterReconciler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterReconcilerSpec `json:"spec"`
	// +kubebuilder:default={observedGeneration:-1}
	Status Status `json:"status,omitempty"`
}

// ClusterReconcilerSpec is the spec of a ClusterReconciler.
type ClusterReconcilerSpec struct {
	ReconcilerSpec `json:",inline"`

	// Namespaces are the watched namespaces. Without a grant's rules, the module may act
	// only in these (default: those of the module's manifest, or all).
	// +kubebuilder:validation:MaxItems=200
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// ServiceAccountNamespace is the namespace of the service account, the ConfigMaps and
	// the Secrets that the spec names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ServiceAccountNamespace string `json:"serviceAccountNamespace"`
}

// ReconcilerSpec configures a module to run. For fields that are empty, the module's
// manifest decides. It names no resources of the machine that runs the module.
type ReconcilerSpec struct {
	// Module is the module to run.
	Module     Module `json:"module"`
	CommonSpec `json:",inline"`

	// ConfigFrom are settings in ConfigMaps and Secrets, which the service account must be
	// able to get. Config takes precedence, and later entries take precedence over earlier
	// ones.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	ConfigFrom []ConfigSource `json:"configFrom,omitempty"`
	// ServiceAccountName is the service account to impersonate (default: the process's
	// --default-service-account, or "default").
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Suspend stops the module in an orderly way.
	Suspend bool `json:"suspend,omitempty"`
	// DeletionPolicy is Release or Orphan. It concerns the objects that have the finalizer of
	// the module when the Reconciler is deleted. Release: the module finalizes the objects
	// that are being deleted, and the finalizer is then taken off all others, without any
	// cleanup; the Reconciler is gone afterwards. Orphan: all objects keep the finalizer, so
	// that another controller can finalize them.
	// +kubebuilder:validation:Enum=Release;Orphan
	// +kubebuilder:default=Release
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Module is the origin of a module.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) != has(self.configMapKeyRef)",message="want image or configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="has(self.image) || !has(self.verify) && !has(self.pullSecrets) && !has(self.registryCA) && !has(self.follow)",message="verify, pullSecrets, registryCA and follow are for an image"
type Module struct {
	ModuleSource `json:",inline"`

	// ConfigMapKeyRef is a small module in the binaryData of a ConfigMap. It may be
	// compressed with gzip.
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`
	// PullSecrets are Secrets with the registry's credentials, which the service
	// account must be able to get.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	PullSecrets []LocalRef `json:"pullSecrets,omitempty"`
	// RegistryCA has certificates in PEM, which the service account must be able to get.
	// The registry's certificate may be signed by one of them, in addition to those that
	// the process trusts.
	RegistryCA *KeySource `json:"registryCA,omitempty"`
}

// ModuleSource is the origin of a module, independent of where it runs.
type ModuleSource struct {
	// Image is a module in a registry: HOST/REPOSITORY:TAG, @DIGEST, or both. With both,
	// the digest takes precedence.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
	// Controller selects one of several controllers in the module.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Controller string `json:"controller,omitempty"`
	// Verify refuses modules that none of these keys has signed.
	Verify *Verify `json:"verify,omitempty"`
	// Follow is the interval at which the tag is checked for another module, which is then
	// swapped in.
	Follow Duration `json:"follow,omitempty"`
}

// Verify has the keys whose signatures are accepted.
type Verify struct {
	// Keys are public keys in PEM.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Keys []string `json:"keys"`
}

// LocalRef names an object in the same namespace.
type LocalRef struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KeyRef is a key of a ConfigMap or a Secret.
type KeyRef struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// KeySource is a key of either a ConfigMap or a Secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.secretKeyRef)",message="want configMapKeyRef or secretKeyRef"
type KeySource struct {
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`
	SecretKeyRef    *KeyRef `json:"secretKeyRef,omitempty"`
}

// ConfigSource is a setting in a ConfigMap or a Secret.
type ConfigSource struct {
	KeySource `json:",inline"`

	// Setting is the setting's name (default: the key).
	// +kubebuilder:validation:MaxLength=253
	Setting string `json:"setting,omitempty"`
	// Optional leaves the setting to the manifest if the key does not exist.
	Optional bool `json:"optional,omitempty"`
}
