// SPDX-License-Identifier: Apache-2.0

// Package admin is the local endpoint for inspecting and controlling a running process:
// JSON over HTTP on a unix socket. The permissions of the socket's file are the only access
// control; there is no network endpoint.
//
//	GET  /v1/status                              the state of the process and its controllers
//	GET  /v1/top?objects=20                      the busiest controllers and objects
//	GET  /v1/explain?controller=&kind=&namespace=&name=   why an object runs, or does not
//	GET  /v1/controllers/{name}/logs?object=&since=&tail=&follow=   its log, one line of JSON each
//	GET  /v1/controllers/{name}/history          the last changes of its module
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
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// ErrUnknown is wrapped by the errors of a Service if no controller has the name.
var ErrUnknown = errors.New("unknown controller")

// Service is the process behind the endpoint. Its methods are safe for concurrent use. A client gets their errors with the class that ClassOf
// returns.
type Service interface {
	// Explain returns one Explanation for each controller that reconciles the object's
	// kind; controllers that know the object come first. If no controller reconciles the
	// kind, the error matches failure.Usage and lists the alternatives.
	Explain(ctx context.Context, q Question) ([]Explanation, error)
	// Top returns the busiest controllers and at most this many objects. It must not block.
	Top(objects int) Top
	// PauseObject pauses an object by an annotation in the API server, or removes the
	// annotation. Other replicas see it too.
	PauseObject(ctx context.Context, controller string, object abi.Key, paused bool) error
	// Logs calls emit with each requested line of a controller's log that is still
	// available, as JSON with a newline. It returns after the last one or, when following,
	// when ctx ends. An error of emit ends it.
	Logs(ctx context.Context, controller string, q LogQuery, emit func(line []byte) error) error
	// LogLevel sets the minimum level of a controller's log, unless level is empty, and
	// returns the current one: debug, info, warn or error.
	LogLevel(controller, level string) (string, error)
	// Release takes the finalizer off the objects, or off all stranded ones: see Stranded. With DryRun, it changes nothing. The error matches failure.Usage if the
	// controller has no finalizer, and it is an error if it would add the finalizer again.
	Release(ctx context.Context, controller string, what Release) ([]Released, error)
	// History returns the last changes of the module of a controller, the oldest first.
	History(controller string) ([]Change, error)
	// Status returns the state of the process. It must not block.
	Status() Status
	// Trigger requests reconciles of the objects, or of all objects of the controller if
	// the list is empty. With force, no run is skipped because its input has not changed.
	Trigger(ctx context.Context, controller string, objects []abi.Key, force bool) (Steered, error)
	// Pause stops a controller from starting reconciles, or resumes them. It is idempotent.
	Pause(ctx context.Context, controller string, paused bool) (Steered, error)
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
	// failure.Usage if the module has no such setting.
	Configure(ctx context.Context, controller string, change map[string]*string) (int64, error)
}

// Steered is the result of a command that may concern all replicas that share the objects of a controller.
type Steered struct {
	// Triggered counts the requests for reconciles, unless all replicas were asked.
	Triggered int `json:"triggered"`
	// Replicas counts the replicas that have followed; 0 unless all were asked.
	Replicas int `json:"replicas,omitempty"`
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
	// From is the file or the reference of the module, for people.
	From string
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
