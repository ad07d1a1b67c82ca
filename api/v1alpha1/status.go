// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// The conditions. Ready is always present; Reconciling and Stalled are present only while
// they are true, and never both, as kstatus and Flux expect.
const (
	Ready          = "Ready"
	Reconciling    = "Reconciling"
	Stalled        = "Stalled"
	ModuleFetched  = "ModuleFetched"
	ModuleVerified = "ModuleVerified"
	Granted        = "Granted"
	KindServed     = "KindServed"
	CachesSynced   = "CachesSynced"
	Healthy        = "Healthy"
	Covered        = "Covered" // if replicas share the work: each part of it has one replica

	// WebhooksRegistered is present if the module has webhooks or conversions.
	WebhooksRegistered = "WebhooksRegistered"
)

// Annotations with which users request an action: a new value is a new request.
// Status.LastHandledReconcileAt echoes the value.
const (
	RequestedAt     = "wasmctl.dev/requestedAt"
	FluxRequestedAt = "reconcile.fluxcd.io/requestedAt"
	ForceAt         = "wasmctl.dev/forceAt" // equal to RequestedAt: accept a module that was rolled back
)

// Status is the state of a Reconciler.
type Status struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the conditions of the Reconciler.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// For is the reconciled kind.
	For string `json:"for,omitempty"`
	// Live is the module that reconciles, Candidate the module that may take over, and
	// Refused the last module that did not take over.
	Live      *Revision  `json:"live,omitempty"`
	Candidate *Candidate `json:"candidate,omitempty"`
	Refused   *Refused   `json:"refused,omitempty"`
	// History has the modules that were live, the latest one first.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	History []Past `json:"history,omitempty"`
	// Audit is the result of mode Audit.
	Audit *Audit `json:"audit,omitempty"`
	// Objects counts the objects. It is updated at most every 30 s.
	Objects *Objects `json:"objects,omitempty"`
	// Finalizers are the finalizers that the modules of the Reconciler have put on objects.
	// When the Reconciler is deleted, the objects are released from them.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	Finalizers []Finalizer `json:"finalizers,omitempty"`
	// LastHandledReconcileAt is the last handled value of the annotation that requests a
	// reconcile.
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// Record is the state that a restart of the process needs: which module is live, and
	// which ones were rolled back.
	Record string `json:"record,omitempty"`
}

// Revision is a module.
type Revision struct {
	// Digest is the sha256 of the module, and Image its origin, by digest.
	Digest string `json:"digest"`
	Image  string `json:"image,omitempty"`
	// Version is the tag, or the short digest.
	Version string `json:"version,omitempty"`
	// Generation is the generation of the spec that first requested the module.
	Generation int64 `json:"generation,omitempty"`
	// Since is the time at which it became live.
	Since metav1.Time `json:"since,omitempty"`
}

// Candidate is a module that may take over.
type Candidate struct {
	Digest  string `json:"digest"`
	Version string `json:"version,omitempty"`
	// Stage is Loading, Shadow, Canary or Probation.
	Stage string      `json:"stage"`
	Since metav1.Time `json:"since,omitempty"`
	// Objects describes the objects of a canary.
	Objects string `json:"objects,omitempty"`
	// Runs, Failures and Differences are rounded down to two digits. For a shadow, Runs
	// counts the compared runs, Differences those that differ from the live module's, and
	// Difference is the first difference.
	Runs        int64  `json:"runs,omitempty"`
	Failures    int64  `json:"failures,omitempty"`
	Differences int64  `json:"differences,omitempty"`
	Difference  string `json:"difference,omitempty"`
}

// Refused is a module that does not run.
type Refused struct {
	Digest  string      `json:"digest,omitempty"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	At      metav1.Time `json:"at"`
}

// Audit has the writes and the capabilities that a module would need.
type Audit struct {
	// Capabilities and Finalizers are the least grant, in the form of spec.grant, for the
	// requests of the module since it was started.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Capabilities []abi.Capability `json:"capabilities,omitempty"`
	// +listType=atomic
	Finalizers []string `json:"finalizers,omitempty"`
	// Writes are the last writes that it would have sent, without duplicates.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Writes []string `json:"writes,omitempty"`
}

// Finalizer is the finalizer of a module.
type Finalizer struct {
	Name string `json:"name"`
	// For is the kind of the objects, as RESOURCE.GROUP.
	For string `json:"for"`
	// Namespaces are the namespaces of the objects; if empty, all.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
}

// Past is a module that was live.
type Past struct {
	Digest  string      `json:"digest"`
	Version string      `json:"version,omitempty"`
	From    metav1.Time `json:"from"`
	To      metav1.Time `json:"to"`
	// Reason is the reason why it is no longer live: Replaced or RolledBack.
	Reason string `json:"reason"`
}

// Objects counts the objects of a Reconciler.
type Objects struct {
	Watched     int64 `json:"watched"`
	Failing     int64 `json:"failing"`
	Quarantined int64 `json:"quarantined"`
}
