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

// Explainer says why objects run, or do not.
type Explainer interface {
	// Explain returns one Explanation for each controller that reconciles the
	// object's kind, those that have the object first. The error says what else there
	// is where none does; it is ErrInvalid then.
	Explain(ctx context.Context, q Question) ([]Explanation, error)
}

// Question names an object, by the name of its controller, by its kind, or by
// both.
type Question struct {
	Controller string
	// Kind is in any form that kubectl takes.
	Kind string
	// Object has no namespace where the kind has none, or where it is "default".
	Object abi.Key
}

// Explanation is all that one controller knows of one object.
type Explanation struct {
	Controller string `json:"controller"`
	Kind       string `json:"kind"`
	Object     string `json:"object"`
	// State is what the object does now, in a word or two, and Why the reasons, the
	// one that counts most first.
	State string   `json:"state"`
	Why   []string `json:"why"`
	// Slot is the one that the object is in; nil unless replicas share the objects, and
	// where it is not known.
	Slot *Slot `json:"slot,omitempty"`
	// Cached is the object in the cache; nil where it is not there.
	Cached *Cached `json:"cached,omitempty"`
	// Running is its run, and Pending the request for the next one.
	Running *history.Running `json:"running,omitempty"`
	Pending *Pending         `json:"pending,omitempty"`
	// FailedRuns counts the failed runs in a row, the first of which ended at
	// FirstFailed.
	FailedRuns  int        `json:"failedRuns,omitempty"`
	FirstFailed *time.Time `json:"firstFailed,omitempty"`
	// Hidden are the events that predicates have hidden since it last ran.
	Hidden *history.Hidden `json:"hidden,omitempty"`
	// MissingRights are those that the controller's module has asked for and does
	// not have, for whatever object.
	MissingRights []MissingRight `json:"missingRights,omitempty"`
	// Runs are the last ones that are known, the newest first.
	Runs []history.Run `json:"runs"`
}

// MissingRight is one right that a module has asked for and does not have. There are
// at most twenty.
type MissingRight struct {
	// Rule would allow it, in the form of a manifest or a grant; Missing says what
	// lacks it.
	Rule    json.RawMessage `json:"rule"`
	Missing string          `json:"missing"`
	// Count is the number of requests, Last the object of the last one, LastTime
	// its time.
	Count    uint64    `json:"count"`
	Last     string    `json:"last"`
	LastTime time.Time `json:"lastTime"`
}

// StateAbsent is the State of an object that the API server does not have.
const StateAbsent = "absent"

// Known reports whether the controller has the object, or has had it.
func (e *Explanation) Known() bool { return e.Cached != nil || e.Running != nil || len(e.Runs) > 0 }

// Cached is the head of an object in the cache.
type Cached struct {
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Generation      int64  `json:"generation,omitempty"`
	Deleting        bool   `json:"deleting,omitempty"`
}

// Pending is a request to run.
type Pending struct {
	// State is waiting, debounced, held, blocked or ready, and At until or since
	// when.
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

// Explain is Explainer.Explain.
func (c *Client) Explain(ctx context.Context, q Question) ([]Explanation, error) {
	values := url.Values{"controller": {q.Controller}, "kind": {q.Kind}, "namespace": {q.Object.Namespace}, "name": {q.Object.Name}}
	var res explainResponse
	err := c.do(ctx, http.MethodGet, "explain?"+values.Encode(), nil, &res)
	return res.Explanations, err
}
