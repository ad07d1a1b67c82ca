// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Question identifies an object by the name of its controller, by its kind, or by both.
type Question struct {
	Controller string
	// Kind is in any form that kubectl accepts.
	Kind string
	// Object has no namespace if the kind is cluster-scoped, or if the namespace is
	// "default".
	Object abi.Key
}

// Explanation is all that one controller knows about one object.
type Explanation struct {
	Controller string `json:"controller"`
	Kind       string `json:"kind"`
	Object     string `json:"object"`
	// State is the current state of the object, in a word or two, and Why has the reasons,
	// the most important first.
	State string   `json:"state"`
	Why   []string `json:"why"`
	// Slot is the slot of the object; nil unless replicas share the objects, or if it is
	// unknown.
	Slot *Slot `json:"slot,omitempty"`
	// Cached is the object in the cache; nil if it is not there.
	Cached *Cached `json:"cached,omitempty"`
	// Running is the current run of the object, and Pending the request for the next one.
	Running *history.Running `json:"running,omitempty"`
	Pending *Pending         `json:"pending,omitempty"`
	// FailedRuns counts the consecutive failed runs, the first of which ended at
	// FirstFailed.
	FailedRuns  int        `json:"failedRuns,omitempty"`
	FirstFailed *time.Time `json:"firstFailed,omitempty"`
	// Hidden are the events that predicates have filtered out since the object last ran.
	Hidden *history.Hidden `json:"hidden,omitempty"`
	// MissingRights are the rights that the controller's module has requested but lacks,
	// for any object.
	MissingRights []MissingRight `json:"missingRights,omitempty"`
	// Runs are the recorded runs, the newest first.
	Runs []history.Run `json:"runs"`
	// Denials are the last requests about the object that a webhook of the module has denied, the
	// newest first.
	Denials []history.Denial `json:"denials,omitempty"`
}

// MissingRight is a right that a module has requested but lacks. At most twenty are listed.
type MissingRight struct {
	// Rule would allow the request, in the form of a manifest or a grant; Missing names the
	// document that lacks it, or is "RBAC". Message is then the API server's refusal of the last request.
	Rule    json.RawMessage `json:"rule"`
	Missing string          `json:"missing"`
	Message string          `json:"message,omitempty"`
	// Count is the number of requests, Last the object of the last one, and LastTime its
	// time.
	Count    uint64    `json:"count"`
	Last     string    `json:"last"`
	LastTime time.Time `json:"lastTime"`
}

// StateStandby is the State of the objects of a replica that may not reconcile.
const StateStandby = "standby"

// StateAbsent is the State of an object that the API server does not have.
const StateAbsent = "absent"

// Known reports whether the controller has the object, or had it before.
func (e *Explanation) Known() bool {
	return e.Cached != nil || e.Running != nil || len(e.Runs)+len(e.Denials) > 0
}

// Cached has the metadata of an object in the cache.
type Cached struct {
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Generation      int64  `json:"generation,omitempty"`
	Deleting        bool   `json:"deleting,omitempty"`
}

// Pending is a request to run.
type Pending struct {
	// State is waiting, debounced, delayed, blocked or ready, and At is when it ends or
	// began.
	State   string        `json:"state"`
	At      time.Time     `json:"at"`
	Reasons queue.Reasons `json:"reasons"`
	Low     bool          `json:"low,omitempty"`
}

// explainResponse is the answer to a Question.
type explainResponse struct {
	Explanations []Explanation `json:"explanations"`
}

func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	list, err := s.service.Explain(r.Context(), Question{
		Controller: q.Get("controller"), Kind: q.Get("kind"), Object: abi.Key{Namespace: q.Get("namespace"), Name: q.Get("name")},
	})
	answer(w, explainResponse{list}, err)
}

// Explain implements Service.Explain.
func (c *Client) Explain(ctx context.Context, q Question) ([]Explanation, error) {
	values := url.Values{"controller": {q.Controller}, "kind": {q.Kind}, "namespace": {q.Object.Namespace}, "name": {q.Object.Name}}
	var res explainResponse
	err := c.do(ctx, http.MethodGet, "explain?"+values.Encode(), nil, &res)
	return res.Explanations, err
}
