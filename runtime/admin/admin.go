// SPDX-License-Identifier: Apache-2.0

// Package admin is the local endpoint for inspecting and controlling a running process:
// JSON over HTTP on a unix socket. The permissions of the socket's file are the only access
// control; there is no network endpoint.
//
//	GET  /v1/status                              the state of the process and its controllers
//	GET  /v1/top?objects=20                      the busiest controllers and objects
//	GET  /v1/explain?controller=&kind=&namespace=&name=   why an object runs, or does not
//	GET  /v1/controllers/{name}/logs?object=&since=&tail=&follow=   its log, one line of JSON each
//	POST /v1/controllers/{name}/log-level        {"level": "debug"}; without a level it returns the current one
//	POST /v1/controllers/{name}/trigger          {"objects": ["namespace/name", ...], "force": true}; without objects, all of them
//	POST /v1/controllers/{name}/pause, /resume   stops and restarts reconciles; with {"object": "namespace/name"}, those of one object
//	POST /v1/controllers/{name}/release          {"objects": ["namespace/name", ...], "all": true, "dryRun": true} takes the finalizer off
//	POST /v1/controllers/{name}/swap             the bytes of a module; ?force=true accepts one that was rolled back
//	                                             canary=10%&canaryNamespace=a&canarySelector=x%3Dy&canaryTime=5m runs it as a canary
//	POST /v1/controllers/{name}/promote, /abort  makes the canary live, or ends it
//	POST /v1/controllers/{name}/shadow           the bytes of a module; ?for=5m&count=100&all=true. The answer is a JSON object per line
//	POST /v1/controllers/{name}/rollback         {"to": revision}; 0 is the previous one
//	POST /v1/controllers/{name}/config           {"change": {"key": "value", "other": null}}; null unsets
//
// An error is {"error": "..."} with a matching HTTP status.
package admin

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// ErrUnknown is wrapped by the errors of a Service if no controller has the name.
var ErrUnknown = errors.New("unknown controller")

// ErrRefused matches errors of requests that a process refuses.
var ErrRefused = errors.New("refused")

// ErrInvalid matches errors of requests with invalid arguments.
var ErrInvalid = errors.New("invalid")

// Refuse makes an error match ErrRefused and preserves its text. If err is nil, it returns
// nil.
func Refuse(err error) error { return failure.As(err, ErrRefused) }

// Invalid makes an error match ErrInvalid and preserves its text. If err is nil, it returns
// nil.
func Invalid(err error) error { return failure.As(err, ErrInvalid) }

// Service is the process behind the endpoint. Its methods are safe for concurrent use.
type Service interface {
	Explainer
	// Top returns the busiest controllers and at most this many objects. It must not block.
	Top(objects int) Top
	// PauseObject pauses an object by an annotation in the API server, or removes the
	// annotation. Other replicas see it too.
	PauseObject(ctx context.Context, controller string, object abi.Key, paused bool) error
	Logger
	Releaser
	// Status returns the state of the process. It must not block.
	Status() Status
	// Trigger requests reconciles of the objects, or of all objects of the controller if
	// the list is empty, and returns the number of requests. With force, no run is skipped
	// because its input has not changed.
	Trigger(ctx context.Context, controller string, objects []abi.Key, force bool) (int, error)
	// Pause stops a controller from starting reconciles, or resumes them. It is idempotent.
	Pause(controller string, paused bool) error
	// Swap makes the module with these bytes live, or runs it as a canary first, and
	// returns when that has begun.
	Swap(ctx context.Context, controller string, wasm []byte, options SwapOptions) (Swapped, error)
	// Promote makes the canary live for all objects. Abort gives its objects back to the
	// live revision.
	Promote(ctx context.Context, controller string) (Swapped, error)
	Abort(ctx context.Context, controller string) (Swapped, error)
	// Shadow runs the module with these bytes on the input of the live one, without sending
	// its writes, and calls report for each compared run.
	Shadow(ctx context.Context, controller string, wasm []byte, options ShadowOptions, report func(Shadowed) error) (shadow.Summary, error)
	// Rollback makes the module of an earlier revision live again; 0 is the previous
	// revision.
	Rollback(ctx context.Context, controller string, to uint64) (Swapped, error)
	// Configure changes settings of the module until the process ends; a nil value leaves
	// the setting to the manifest. It returns the number of the settings. The error matches
	// ErrInvalid if the module has no such setting.
	Configure(ctx context.Context, controller string, change map[string]*string) (int64, error)
}

// SwapOptions set how a module is swapped in.
type SwapOptions struct {
	// Force accepts a module that was rolled back; otherwise it is refused.
	Force bool
	// Canary selects the objects on which the module is tried first; if nil, the process
	// decides.
	Canary *Canary
	// Proof is the proof of the module's signature; nil if there is none.
	Proof []byte
}

// Canary selects the objects on which a module is tried first: those that match all fields.
type Canary struct {
	// Share is the share of the objects, such as "10%"; "off" or empty selects all.
	Share string
	// Namespaces are the namespaces of the objects, and Selector is a label selector; if
	// empty, all objects match.
	Namespaces []string
	Selector   string
	// Time is the time after which the canary gets all objects automatically; 0 means
	// never. If nil, the setting of the controller applies.
	Time *time.Duration
}

// Swapped is the result of a swap.
type Swapped struct {
	// Revision is the number of the live revision. Unchanged reports that it was live
	// before.
	Revision  uint64 `json:"revision"`
	Unchanged bool   `json:"unchanged,omitempty"`
	// Canary reports that the revision is not live, but runs as a canary.
	Canary bool `json:"canary,omitempty"`
}

// Revision is a loaded or refused version of a controller's module.
type Revision struct {
	// Number counts revisions from 1; it is 0 for a module that is being compiled or was
	// refused.
	Number uint64 `json:"number,omitempty"`
	Digest string `json:"digest"`
	// State is loading, canary, probation, live, draining, kept, shadow, failed,
	// refused, aborted or replaced.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Runs counts the reconciles of the revision, and Errors those that failed.
	Runs   uint64 `json:"runs"`
	Errors uint64 `json:"errors"`
	// Kept reports whether a rollback to the revision is possible.
	Kept bool `json:"kept,omitempty"`
	// Canary describes the objects of a canary and its time.
	Canary string `json:"canary,omitempty"`
	// Reason explains what a loading revision waits for, or why it failed, was refused, or
	// ended as a canary.
	Reason string `json:"reason,omitempty"`
}

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
	// Shards describes the assignment of objects to replicas; nil unless they share
	// objects.
	Shards *Shards `json:"shards,omitempty"`
	// Controllers are in the order in which they were started.
	Controllers []Controller `json:"controllers"`
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
	// State is a summary of a few words: "ok", or the most important problem.
	State string `json:"state"`
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
	// Watches has the watch of the reconciled kind first.
	Watches []Watch `json:"watches"`
}

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
