package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The conditions. Ready is always there; Reconciling and Stalled are there only
// while they are true, never both, as kstatus and Flux read them.
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
	Covered        = "Covered" // where replicas share the work: each part of it has one
)

// Annotations by which people ask for something: any other value is another
// request. Status.LastHandledReconcileAt echoes the value.
const (
	RequestedAt     = "wasmctl.dev/requestedAt"
	FluxRequestedAt = "reconcile.fluxcd.io/requestedAt"
	ForceAt         = "wasmctl.dev/forceAt" // equal to RequestedAt: try a module again that was rolled back
)

// Status is how a Reconciler does.
type Status struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: see the constants.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// For is the kind that is reconciled.
	For string `json:"for,omitempty"`
	// Live is the module that reconciles, Candidate one that is to take over, and
	// Refused the last one that did not.
	Live      *Revision  `json:"live,omitempty"`
	Candidate *Candidate `json:"candidate,omitempty"`
	Refused   *Refused   `json:"refused,omitempty"`
	// History has the modules that were live, the last one first.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	History []Past `json:"history,omitempty"`
	// Audit is what the module would do, in mode Audit.
	Audit *Audit `json:"audit,omitempty"`
	// Objects counts, at most every 30 s.
	Objects *Objects `json:"objects,omitempty"`
	// LastHandledReconcileAt is the last value of the annotation by which somebody
	// has asked for a reconcile.
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// Record is what the next start of the process reads: which module is live, and
	// which ones were rolled back.
	Record string `json:"record,omitempty"`
}

// Revision is a module.
type Revision struct {
	// Digest is the sha256 of the module, Image where it came from, by digest.
	Digest string `json:"digest"`
	Image  string `json:"image,omitempty"`
	// Version is the tag, or the short digest.
	Version string `json:"version,omitempty"`
	// Generation is that of the spec that asked for it first.
	Generation int64 `json:"generation,omitempty"`
	// Since is when it became live.
	Since metav1.Time `json:"since,omitempty"`
}

// Candidate is a module that is to take over.
type Candidate struct {
	Digest  string `json:"digest"`
	Version string `json:"version,omitempty"`
	// Stage is Loading, Shadow, Canary or Probation.
	Stage string      `json:"stage"`
	Since metav1.Time `json:"since,omitempty"`
	// Objects says which objects a canary has.
	Objects string `json:"objects,omitempty"`
	// Runs, Failures and Differences are rounded down to two digits. Runs of a shadow
	// are those that were compared, Differences those of them that differ from the
	// live module's, and Difference is the first one.
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

// Audit is what a module would do.
type Audit struct {
	// Capabilities and Finalizers are the least, as spec.grant has them, that allow
	// what the module has asked for since it was started.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Capabilities []Capability `json:"capabilities,omitempty"`
	// +listType=atomic
	Finalizers []string `json:"finalizers,omitempty"`
	// Writes are what it would have written last, each once.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Writes []string `json:"writes,omitempty"`
}

// Past is a module that was live.
type Past struct {
	Digest  string      `json:"digest"`
	Version string      `json:"version,omitempty"`
	From    metav1.Time `json:"from"`
	To      metav1.Time `json:"to"`
	// Reason says why it is not live any longer: Replaced or RolledBack.
	Reason string `json:"reason"`
}

// Objects counts the objects of a Reconciler.
type Objects struct {
	Watched     int64 `json:"watched"`
	Failing     int64 `json:"failing"`
	Quarantined int64 `json:"quarantined"`
}
