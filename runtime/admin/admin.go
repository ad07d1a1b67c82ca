// Package admin is the local endpoint through which a running process is asked
// and steered: JSON over HTTP on a unix socket. Who may open the socket's file
// may use it; there is no network side.
//
//	GET  /v1/status                              what runs, and how it does
//	POST /v1/controllers/{name}/trigger          {"objects": ["namespace/name", ...]}; without objects all of them
//	POST /v1/controllers/{name}/pause, /resume   reconciles stop to start, and start again
//
// An error is a {"error": "..."} with a fitting HTTP code.
package admin

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrUnknown is wrapped by the errors of a Service where no controller has the
// name.
var ErrUnknown = errors.New("there is no controller of this name")

// Service is the process that is asked and steered. Its methods are called by
// several goroutines at once.
type Service interface {
	// Status says what runs. It must not block.
	Status() Status
	// Trigger asks for reconciles of the objects, or of all objects of the
	// controller where there are none, and returns how many it asked for.
	Trigger(ctx context.Context, controller string, objects []abi.Key) (int, error)
	// Pause stops a controller from starting reconciles, or lets it start them
	// again. A second time does nothing.
	Pause(controller string, paused bool) error
}

// Status is how a process does.
type Status struct {
	// Version is that of wasmctl, PID the process, Started when it began.
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Leader says whether this replica may write; nil without an election.
	Leader *bool `json:"leader,omitempty"`
	// Controllers are in the order in which they were started.
	Controllers []Controller `json:"controllers"`
}

// Controller is how one controller does.
type Controller struct {
	// Name is the controller's, Module the file that was loaded, Digest the
	// sha256 of it, Kind what is reconciled.
	Name   string `json:"name"`
	Module string `json:"module"`
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
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
	// Watches has the reconciled kind first.
	Watches []Watch `json:"watches"`
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
	// Message says what a phase other than ready waits for.
	Message string `json:"message,omitempty"`
}

// triggerRequest is the body of a trigger.
type triggerRequest struct {
	Objects []string `json:"objects,omitempty"`
}

// triggerResponse is its answer.
type triggerResponse struct {
	Triggered int `json:"triggered"`
}

type errorResponse struct {
	Error string `json:"error"`
}
