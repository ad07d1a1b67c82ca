// Package admin is the local endpoint through which a running process is asked and steered: JSON over HTTP on a unix socket. Access to
// the socket's file is the only access control; there is no network endpoint.
//
//	GET  /v1/status                              what runs, and how it does
//	GET  /v1/top?objects=20                      what is busiest
//	GET  /v1/explain?controller=&kind=&namespace=&name=   why an object runs, or does not
//	GET  /v1/controllers/{name}/logs?object=&since=&tail=&follow=   its log, a line of JSON each
//	POST /v1/controllers/{name}/log-level        {"level": "debug"}; without a level it is only told
//	POST /v1/controllers/{name}/trigger          {"objects": ["namespace/name", ...], "force": true}; without objects all of them
//	POST /v1/controllers/{name}/pause, /resume   reconciles stop to start, and start again; {"object": "namespace/name"} of one object
//	POST /v1/controllers/{name}/swap             the bytes of a module; ?force=true tries one again that was rolled back
//	                                             canary=10%&canaryNamespace=a&canarySelector=x%3Dy&canaryTime=5m runs it as a canary
//	POST /v1/controllers/{name}/promote, /abort  what is run as a canary gets all, or none
//	POST /v1/controllers/{name}/shadow           the bytes of a module; ?for=5m&count=100&all=true. The answer is a JSON object per line
//	POST /v1/controllers/{name}/rollback         {"to": revision}; 0 is the one before
//	POST /v1/controllers/{name}/config           {"change": {"key": "value", "other": null}}; null unsets
//
// An error is a {"error": "..."} with a fitting HTTP code.
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

// ErrUnknown is wrapped by the errors of a Service where no controller has the
// name.
var ErrUnknown = errors.New("unknown controller")

// ErrRefused matches errors of requests that a process refuses.
var ErrRefused = errors.New("refused")

// ErrInvalid matches errors of requests with invalid arguments.
var ErrInvalid = errors.New("invalid")

// Refuse makes an error match ErrRefused and keeps its text. Nil stays nil.
func Refuse(err error) error { return failure.As(err, ErrRefused) }

// Invalid makes an error match ErrInvalid and keeps its text. Nil stays nil.
func Invalid(err error) error { return failure.As(err, ErrInvalid) }

// Service is the process that is asked and steered. Its methods are called by
// several goroutines at once.
type Service interface {
	Explainer
	// Top says what is busiest, with at most so many objects. It must not block.
	Top(objects int) Top
	// PauseObject pauses an object by its annotation, or undoes that, and says so in
	// the API server: other replicas see it too.
	PauseObject(ctx context.Context, controller string, object abi.Key, paused bool) error
	Logger
	// Status says what runs. It must not block.
	Status() Status
	// Trigger asks for reconciles of the objects, or of all objects of the
	// controller where there are none, and returns how many it asked for. With force
	// none is skipped because nothing it read has changed.
	Trigger(ctx context.Context, controller string, objects []abi.Key, force bool) (int, error)
	// Pause stops a controller from starting reconciles, or lets it start them
	// again. A second time does nothing.
	Pause(controller string, paused bool) error
	// Swap makes the module with these bytes live, or runs it as a canary
	// first, and returns when that has begun.
	Swap(ctx context.Context, controller string, wasm []byte, options SwapOptions) (Swapped, error)
	// Promote gives what is run as a canary all of them, Abort none.
	Promote(ctx context.Context, controller string) (Swapped, error)
	Abort(ctx context.Context, controller string) (Swapped, error)
	// Shadow runs the module with these bytes on what the live one runs on, with its
	// writes held back, and reports each run that was compared.
	Shadow(ctx context.Context, controller string, wasm []byte, options ShadowOptions, report func(Shadowed) error) (shadow.Summary, error)
	// Rollback makes the module of an earlier revision live again; 0 is the one
	// before.
	Rollback(ctx context.Context, controller string, to uint64) (Swapped, error)
	// Configure changes settings of the module until the process ends; a nil value
	// leaves one to the manifest. It returns the number of the settings. The error is
	// ErrInvalid for a setting that the module does not have.
	Configure(ctx context.Context, controller string, change map[string]*string) (int64, error)
}

// SwapOptions says how a module is swapped in.
type SwapOptions struct {
	// Force tries one that was rolled back again; else it is refused.
	Force bool
	// Canary says on which objects it is tried first; nil leaves that to the
	// process.
	Canary *Canary
	// Proof shows who has signed the module; nil: nothing does.
	Proof []byte
}

// Canary says on which objects a module is tried first: those that all of its
// fields match.
type Canary struct {
	// Share is that of the objects, as "10%"; "off" or empty is all.
	Share string
	// Namespaces and Selector, a label selector, are those of the objects; empty is
	// all.
	Namespaces []string
	Selector   string
	// Time is when it gets all objects by itself; 0 is never.
	Time time.Duration
}

// Swapped is the result of a swap.
type Swapped struct {
	// Revision is the number of the revision that is live now. Unchanged says
	// that it was before.
	Revision  uint64 `json:"revision"`
	Unchanged bool   `json:"unchanged,omitempty"`
	// Canary says that it is not live, but run as a canary.
	Canary bool `json:"canary,omitempty"`
}

// Revision is one time that a controller's module was live, or was to be.
type Revision struct {
	// Number counts revisions from 1; 0 for a module that is compiled, or was
	// refused.
	Number uint64 `json:"number,omitempty"`
	Digest string `json:"digest"`
	// State is loading, canary, probation, live, draining, kept, shadow, failed,
	// refused, aborted or replaced.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Runs counts its reconciles, Errors those that failed.
	Runs   uint64 `json:"runs"`
	Errors uint64 `json:"errors"`
	// Kept says that it can be rolled back to.
	Kept bool `json:"kept,omitempty"`
	// Canary says which objects a canary has, and for how long.
	Canary string `json:"canary,omitempty"`
	// Reason says what one that is loading waits for, or why it failed, was refused,
	// or ended as a canary.
	Reason string `json:"reason,omitempty"`
}

// Status is how a process does.
type Status struct {
	// Version is that of wasmctl, PID the process, Started when it began.
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Hardening is what the process has given up, for people; empty where nothing is
	// known.
	Hardening string `json:"hardening,omitempty"`
	// InsecureRegistries are hosts that are spoken to without verified TLS.
	InsecureRegistries []string `json:"insecureRegistries,omitempty"`
	// Leader says whether this replica may write; nil without an election.
	Leader *bool `json:"leader,omitempty"`
	// Shards says which replica runs which objects; nil unless they share them.
	Shards *Shards `json:"shards,omitempty"`
	// Controllers are in the order in which they were started.
	Controllers []Controller `json:"controllers"`
}

// Controller is how one controller does.
type Controller struct {
	// Name is the controller's, Module the file or the reference that was loaded, Digest the
	// sha256 of it, Kind what is reconciled.
	Name   string `json:"name"`
	Module string `json:"module"`
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
	// Signers are the fingerprints of the keys that are known to have signed the module.
	Signers []string `json:"signers,omitempty"`
	// Phase is loading, waiting (for a kind, or the cluster), running or failed (it
	// could not be started, and is retried), Message why, Since when that began. A
	// controller that does not run has nothing of what follows.
	Phase   string    `json:"phase"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// State is a summary of a few words: "ok", or the most important problem.
	State string `json:"state"`
	// Paused says that no reconcile starts.
	Paused bool `json:"paused,omitempty"`
	// Ready counts the objects that are due, Waiting those that wait for a time
	// (a requeue, a retry, the debounce), Running those that are reconciled now.
	Ready   int `json:"ready"`
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	// Runs counts reconciles, Failures those that failed, by kind.
	Runs     uint64            `json:"runs"`
	Failures map[string]uint64 `json:"failures"`
	// Workers is how many objects are reconciled at a time, OldestReady for how long
	// the next object has been due.
	Workers     int              `json:"workers"`
	OldestReady history.Duration `json:"oldestReady"`
	// LongestRun is the run that has been under way for longest.
	LongestRun *LongestRun `json:"longestRun,omitempty"`
	// Failing counts objects whose last run failed; LastFailure is the last run that
	// failed.
	Failing     int          `json:"failing"`
	LastFailure *LastFailure `json:"lastFailure,omitempty"`
	// Denied counts what runs asked for and the policy did not allow.
	Denied uint64 `json:"denied,omitempty"`
	// Memory is the linear memory of the guests' instances, HostMemory the host's own
	// for their operations, both of which count in --memory-budget, and History what
	// the last runs take, in bytes. LogsDropped counts lines that came too often.
	Memory      int64  `json:"memory"`
	HostMemory  int64  `json:"hostMemory"`
	History     int64  `json:"history"`
	LogsDropped uint64 `json:"logsDropped,omitempty"`
	// Process is the one that the instances are in; nil where that is the
	// controller's own.
	Process *Process `json:"process,omitempty"`
	// Revision is the number of the live one.
	Revision uint64 `json:"revision,omitempty"`
	// Fuel is what the module has used, in the unit of docs/metering.md; 0 where it
	// is not metered.
	Fuel uint64 `json:"fuel,omitempty"`
	// HotLoops counts the objects that were found to trigger themselves forever.
	HotLoops uint64 `json:"hotLoops,omitempty"`
	// Quarantined counts the objects whose runs keep trapping or reaching limits;
	// Quarantine has those that have been left alone for longest, at most 20.
	Quarantined int                 `json:"quarantined,omitempty"`
	Quarantine  []QuarantinedObject `json:"quarantine,omitempty"`
	// Limits counts how often the module has reached each of its limits.
	Limits map[string]uint64 `json:"limits,omitempty"`
	// Revisions are those of the module: the live one, those before that still
	// have something, and the last that failed.
	Revisions []Revision `json:"revisions"`
	// MissingRights are those that the module was denied, and those that it requests
	// and is not granted; the latter have a Count of 0.
	MissingRights []MissingRight `json:"missingRights,omitempty"`
	// Watches has the reconciled kind first.
	Watches []Watch `json:"watches"`
}

// The values of Controller.Phase.
const (
	PhaseLoading = "loading" // its module is read, compiled and checked
	PhaseWaiting = "waiting" // for a kind or the cluster
	PhaseRunning = "running"
	PhaseFailed  = "failed" // it could not be loaded, and is retried
)

// QuarantinedObject is an object that is left alone.
type QuarantinedObject struct {
	// Object is its namespace and name.
	Object string `json:"object"`
	// Since is when it was quarantined, Until when it is retried; Runs counts its
	// failed runs in a row.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Runs  int       `json:"runs"`
	// Kind is how the last of them ended (trap, timeout, memory or output), Error
	// its error with the stack trace of the guest.
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// Process is a process of modules. Memory is what is resident, in bytes.
type Process struct {
	PID    int   `json:"pid"`
	Memory int64 `json:"memory"`
}

// LongestRun is a run that is under way.
type LongestRun struct {
	Object string    `json:"object"`
	ID     string    `json:"id"`
	Since  time.Time `json:"since"`
}

// LastFailure is a run that failed.
type LastFailure struct {
	Object string    `json:"object"`
	At     time.Time `json:"at"`
	// Kind is error, trap, timeout, memory or output, Error why.
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// Watch is how one watch does.
type Watch struct {
	// Source is what is watched, Phase one of syncing, ready, denied, absent and
	// failing (rule 13).
	Source string `json:"source"`
	Phase  string `json:"phase"`
	// Since is when the phase began, LastProgress when the API server last sent
	// something.
	Since        time.Time  `json:"since"`
	LastProgress *time.Time `json:"lastProgress,omitempty"`
	// Objects is how many the store has.
	Objects int `json:"objects"`
	// Unmapped counts objects whose events the module's map could not handle when
	// it was last asked.
	Unmapped int `json:"unmapped,omitempty"`
	// Message says what a phase other than ready waits for, or why map fails.
	Message string `json:"message,omitempty"`
}
