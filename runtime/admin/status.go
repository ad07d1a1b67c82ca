// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"time"

	"github.com/wasmctl/wasmctl/runtime/history"
)

// Status is the state of a process.
type Status struct {
	// Version is the version of wasmctl, PID the process ID, and Started the start time.
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Hardening describes the rights that the process has given up; empty if that is
	// unknown.
	Hardening string `json:"hardening,omitempty"`
	// InsecureRegistries are registries without verified TLS.
	InsecureRegistries []string `json:"insecureRegistries,omitempty"`
	// Leader reports whether this replica may write; nil without an election.
	Leader *bool `json:"leader,omitempty"`
	// LeaderID is the identity of the leader of the election, as this replica has seen it; it begins with
	// the name of its host. It is empty without an election.
	LeaderID string `json:"leaderID,omitempty"`
	// Shards describes the assignment of objects to replicas; nil unless they share
	// objects.
	Shards *Shards `json:"shards,omitempty"`
	// Controllers are in the order in which they were started.
	Controllers []Controller `json:"controllers"`
	// Reconcilers are the Reconcilers and ClusterReconcilers that this process serves, ordered by name.
	Reconcilers []Reconciler `json:"reconcilers,omitempty"`
	// Tenants are the accounts of the tenants that use memory, ordered by name.
	Tenants []Tenant `json:"tenants,omitempty"`
}

// Tenant is the account of a tenant: what a process does for it.
type Tenant struct {
	// Name is a namespace, or controller/NAME for a controller that is its own tenant.
	Name string `json:"name"`
	// Memory is charged to the tenant, in bytes, and Kinds are its parts that are not 0, by name;
	// Pinned is the part that cannot be taken back, and Share its fair share.
	Memory int64            `json:"memory"`
	Kinds  map[string]int64 `json:"kinds,omitempty"`
	Pinned int64            `json:"pinned"`
	Share  int64            `json:"share"`
	// Refused counts the requests for memory that were refused, and Reclaimed the runs that
	// were interrupted because other tenants needed their shares.
	Refused   uint64 `json:"refused"`
	Reclaimed uint64 `json:"reclaimed"`
	// Computing is how long the runs of its present controllers have computed: elapsed time without
	// waits for the API server, which is more than CPU time while the CPUs are overloaded.
	Computing history.Duration `json:"computing"`
	// LogBytes is what the log of the process has about the tenant, about, and LogLinesDropped
	// counts the lines beyond its bounds.
	LogBytes        int64  `json:"logBytes"`
	LogLinesDropped uint64 `json:"logLinesDropped"`
}

// Reconciler is the condition Ready of a Reconciler or a ClusterReconciler.
type Reconciler struct {
	// Kind is Reconciler or ClusterReconciler, Name its namespace and name, and Controller the name of
	// its controller, which may not run.
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller string `json:"controller"`
	// Ready, Reason, Message and Since are those of the condition. Trouble reports whether somebody has to
	// do something about it.
	Ready   bool      `json:"ready"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	Trouble bool      `json:"trouble,omitempty"`
}

// Controller is the state of one controller.
type Controller struct {
	// Name is the controller's name, Module the file or the reference that was loaded,
	// Digest its sha256, and Kind the reconciled kind.
	Name   string `json:"name"`
	Module string `json:"module"`
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
	// Signers are the fingerprints of the keys that are known to have signed the module.
	Signers []string `json:"signers,omitempty"`
	// Phase is loading, waiting (for a kind or the cluster), running or failed (the
	// controller could not be started, and is retried), Message its reason, and Since its
	// beginning. All following fields are unset for a controller that does not run.
	Phase   string    `json:"phase"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// State is a summary of a few words: StateOK, or the most important problem.
	State string `json:"state"`
	// Restarting reports that the controller ends, and is loaded again: its options have changed.
	Restarting bool `json:"restarting,omitempty"`
	// Paused reports that no reconcile starts.
	Paused bool `json:"paused,omitempty"`
	// Ready counts the objects that are due, Waiting those that wait for a time (a requeue,
	// a retry, the debounce), and Running those that are being reconciled.
	Ready   int `json:"ready"`
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	// Runs counts reconciles, and Failures those that failed, by kind.
	Runs     uint64            `json:"runs"`
	Failures map[string]uint64 `json:"failures"`
	// Workers is the maximum number of concurrent reconciles, and OldestReady how long the
	// next object has been due.
	Workers     int              `json:"workers"`
	OldestReady history.Duration `json:"oldestReady"`
	// LongestRun is the run that has been in progress for the longest time.
	LongestRun *LongestRun `json:"longestRun,omitempty"`
	// Failing counts objects whose last run failed; LastFailure is the last failed run.
	Failing     int          `json:"failing"`
	LastFailure *LastFailure `json:"lastFailure,omitempty"`
	// Denied counts the requests of runs that the policy denied.
	Denied uint64 `json:"denied,omitempty"`
	// Memory is the linear memory of the guests' instances, and HostMemory the host's own
	// memory for their operations; both count in --memory-budget. History is the memory of
	// the last runs. All are in bytes. LogsDropped counts lines that the rate limit has
	// discarded.
	Memory      int64  `json:"memory"`
	HostMemory  int64  `json:"hostMemory"`
	History     int64  `json:"history"`
	LogsDropped uint64 `json:"logsDropped,omitempty"`
	// Process is the process that has the instances; nil if that is the controller's own
	// process.
	Process *Process `json:"process,omitempty"`
	// Revision is the number of the live revision.
	Revision uint64 `json:"revision,omitempty"`
	// Fuel is the fuel that the module has used, in the unit of docs/metering.md; 0 if it
	// is not metered.
	Fuel uint64 `json:"fuel,omitempty"`
	// HotLoops counts the hot loops that were found. HotObjects is the number of objects
	// that are in one now; Hot has the first 20 of them.
	HotLoops   uint64      `json:"hotLoops,omitempty"`
	HotObjects int         `json:"hotObjects,omitempty"`
	Hot        []HotObject `json:"hot,omitempty"`
	// Quarantined counts the objects whose runs keep trapping or reaching limits;
	// Quarantine has those that have been quarantined for the longest time, at most 20.
	Quarantined int                 `json:"quarantined,omitempty"`
	Quarantine  []QuarantinedObject `json:"quarantine,omitempty"`
	// Finalizer is the finalizer of the module; nil if it has none.
	Finalizer *Finalizer `json:"finalizer,omitempty"`
	// Stranded are the objects that have the finalizer of the controller but are no longer
	// watched; nil if there are none, and all have been found.
	Stranded *Stranded `json:"stranded,omitempty"`
	// Limits counts how often the module has reached each of its limits.
	Limits map[string]uint64 `json:"limits,omitempty"`
	// Revisions are the live revision, earlier ones that still hold resources, and the last
	// ones that failed.
	Revisions []Revision `json:"revisions"`
	// MissingRights are the rights that the module was denied, and those that it requests
	// but was not granted; the latter have a Count of 0.
	MissingRights []MissingRight `json:"missingRights,omitempty"`
	// Webhooks are the webhooks and conversions of the live module.
	Webhooks []Webhook `json:"webhooks,omitempty"`
	// Watches has the watch of the reconciled kind first.
	Watches []Watch `json:"watches"`
}

// Webhook is a webhook or a conversion of a module.
type Webhook struct {
	// Type is validate, default or convert. Name is the path of the URL, or KIND.GROUP of a conversion.
	Type string `json:"type"`
	Name string `json:"name"`
	// Resources are those of the rules of a webhook, as RESOURCE.GROUP.
	Resources []string `json:"resources,omitempty"`
	// Since is when the process first saw that it is registered with the API server; nil if it is not, and
	// Message says why.
	Since   *time.Time `json:"since,omitempty"`
	Message string     `json:"message,omitempty"`
	// Never reports that the controller is not meant to serve it: a Reconciler converts nothing.
	Never bool `json:"never,omitempty"`
}

// Missing reports whether somebody must do something so that the webhook is served.
func (w *Webhook) Missing() bool { return w.Since == nil && !w.Never }

// StateOK is the State of a controller without a problem.
const StateOK = "ok"

// The values of Controller.Phase.
const (
	PhaseLoading = "loading" // its module is read, compiled and checked
	PhaseWaiting = "waiting" // for a kind or the cluster
	PhaseRunning = "running"
	PhaseFailed  = "failed" // it could not be loaded, and is retried
)

// QuarantinedObject is an object whose runs are suspended because they keep failing.
type QuarantinedObject struct {
	// Object is its namespace and name.
	Object string `json:"object"`
	// Since is when it was quarantined, and Until when it is retried; Runs counts its
	// consecutive failed runs.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Runs  int       `json:"runs"`
	// Kind is how the last of them ended (trap, timeout, memory or output), and Error its
	// error with the stack trace of the guest.
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// HotObject is an object whose runs keep each other going.
type HotObject struct {
	// Object is its namespace and name, and Cause the reason: "its runs ask for the next one
	// at once".
	Object string `json:"object"`
	Cause  string `json:"cause"`
	// Runs counts the consecutive runs of the loop. Delay is the time between two of them.
	Runs  int              `json:"runs"`
	Delay history.Duration `json:"delay"`
}

// Stranded describes objects that a controller does not finalize, so that their deletion
// waits.
type Stranded struct {
	// Finalizer is the name of the finalizer.
	Finalizer string `json:"finalizer"`
	// Total counts the objects, and Objects has the first 20, those that are being deleted
	// first.
	Total   int              `json:"total"`
	Objects []StrandedObject `json:"objects"`
	// Unknown is the reason why objects may be missing; empty if none is.
	Unknown string `json:"unknown,omitempty"`
}

// StrandedObject is an object with the finalizer that is outside of the watched set. It was
// watched before, or its deletion has waited for minutes.
type StrandedObject struct {
	// Object is its namespace and name. Deleting reports whether its deletion was requested.
	Object   string `json:"object"`
	Deleting bool   `json:"deleting,omitempty"`
}

// Process is a process of modules. Memory is its resident memory, in bytes.
type Process struct {
	PID    int   `json:"pid"`
	Memory int64 `json:"memory"`
}

// LongestRun is a run in progress.
type LongestRun struct {
	Object string    `json:"object"`
	ID     string    `json:"id"`
	Since  time.Time `json:"since"`
}

// LastFailure is a run that failed.
type LastFailure struct {
	Object string    `json:"object"`
	At     time.Time `json:"at"`
	// Kind is error, trap, timeout, memory or output, and Error the reason.
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// Finalizer is the finalizer that a controller puts on its objects, in these namespaces or, if there are none, in all.
type Finalizer struct {
	Name       string   `json:"name"`
	Namespaces []string `json:"namespaces,omitempty"`
}

// Watch is the state of one watch.
type Watch struct {
	// Source is the watched resource, and Phase one of syncing, ready, denied, absent and
	// failing (rule 13).
	Source string `json:"source"`
	Phase  string `json:"phase"`
	// Since is when the phase began, and LastProgress when the API server last sent data.
	Since        time.Time  `json:"since"`
	LastProgress *time.Time `json:"lastProgress,omitempty"`
	// Objects is the number of objects in the store.
	Objects int `json:"objects"`
	// Unmapped counts the objects for whose events the module's map failed at the last
	// call.
	Unmapped int `json:"unmapped,omitempty"`
	// Message explains a phase other than ready, or why map fails.
	Message string `json:"message,omitempty"`
}
