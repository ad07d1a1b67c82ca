package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/wasmctl/wasmctl/abi"
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

// Duration is a duration that is written as text: "1.5s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
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
	Running *Running `json:"running,omitempty"`
	Pending *Pending `json:"pending,omitempty"`
	// FailedRuns counts the failed runs in a row, the first of which ended at
	// FirstFailed.
	FailedRuns  int        `json:"failedRuns,omitempty"`
	FirstFailed *time.Time `json:"firstFailed,omitempty"`
	// Hidden are the events that predicates have hidden since it last ran.
	Hidden *Hidden `json:"hidden,omitempty"`
	// MissingRights are those that the controller's module has asked for and does
	// not have, for whatever object.
	MissingRights []MissingRight `json:"missingRights,omitempty"`
	// Runs are the last ones that are known, the newest first.
	Runs []Run `json:"runs"`
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

// Running is a run that is not over.
type Running struct {
	ID    string    `json:"id,omitempty"`
	Since time.Time `json:"since"`
	// Reasons are why it runs, Operations what it has done until now.
	Reasons    []string    `json:"reasons"`
	Operations []Operation `json:"operations,omitempty"`
}

// Pending is a request to run.
type Pending struct {
	// State is waiting, debounced, held, blocked or ready, and At until or since
	// when.
	State   string    `json:"state"`
	At      time.Time `json:"at"`
	Reasons []string  `json:"reasons"`
	Low     bool      `json:"low,omitempty"`
}

// Hidden counts events that no run was started for.
type Hidden struct {
	Count uint64    `json:"count"`
	Last  time.Time `json:"last"`
	// Unchanged names the predicates that saw no change in the last one.
	Unchanged string `json:"unchanged"`
}

// Run is one run of an object.
type Run struct {
	ID string `json:"id,omitempty"`
	// TraceID is that of its trace; empty where none is written.
	TraceID string   `json:"traceId,omitempty"`
	Reasons []string `json:"reasons"`
	// Started is when it began, Queued for how long it was due before, Took how long
	// it was under way.
	Started  time.Time `json:"started"`
	Queued   Duration  `json:"queued"`
	Took     Duration  `json:"took"`
	Revision uint64    `json:"revision,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	Finalize bool      `json:"finalize,omitempty"`
	// Result is succeeded, failed, skipped or interrupted, Kind the kind of a
	// failure, Error why.
	Result string `json:"result"`
	Kind   string `json:"kind,omitempty"`
	Error  string `json:"error,omitempty"`
	// Next is what followed, and DecidedBy who chose it.
	Next      string   `json:"next"`
	DecidedBy string   `json:"decidedBy,omitempty"`
	Delay     Duration `json:"delay,omitempty"`
	Fuel      int64    `json:"fuel,omitempty"`
	// Stale says that the cache did not yet have what the run before had written.
	Stale bool `json:"stale,omitempty"`
	// First says that no earlier state of the object was known; else Changes are
	// what has changed in it since the run before.
	First   bool     `json:"first,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	// Related are what had changed, since the run before, in the related objects
	// that Reasons names, as far as it is known.
	Related []Related `json:"related,omitempty"`
	// Operations are the first that it asked for, MoreOperations counts the rest.
	Operations     []Operation `json:"operations,omitempty"`
	MoreOperations int         `json:"moreOperations,omitempty"`
}

// Related is what had changed in an object that a reason names.
type Related struct {
	Resource string `json:"resource"`
	Object   string `json:"object"`
	// Effect is created, changed or deleted, or unchanged where its states differ in
	// nothing that the watch has: some watches have the metadata only.
	Effect  string   `json:"effect"`
	Changes []Change `json:"changes,omitempty"`
}

// Operation is what a run asked for.
type Operation struct {
	Name        string `json:"name"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Object      string `json:"object,omitempty"`
	DryRun      bool   `json:"dryRun,omitempty"`
	// Effect is read, created, changed, unchanged, written (it is not known what was
	// there before), deleted, denied or failed.
	Effect  string   `json:"effect"`
	Took    Duration `json:"took,omitempty"`
	Error   string   `json:"error,omitempty"`
	Changes []Change `json:"changes,omitempty"`
}

// Change is a field that has changed. Before and After are the beginnings of its
// values as JSON; empty where there was none. Those of Secrets are hidden.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
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
