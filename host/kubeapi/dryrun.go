package kubeapi

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
)

// DryRun says what becomes of the writes of an API.
type DryRun string

// Values of DryRun.
const (
	// DryRunNone carries writes out.
	DryRunNone DryRun = ""
	// DryRunServer sends each write with dryRun=All: the API server says what
	// it would lead to, admission and validation included, and stores nothing.
	DryRunServer DryRun = "server"
	// DryRunClient sends no write. Its answer is composed of the current object
	// and the request; it is not validated and has no defaults, and of server-side
	// apply it knows neither owners nor the schema's list keys.
	DryRunClient DryRun = "client"
)

// WithDryRun returns the same API with writes that change nothing: those of the
// guest's calls, of declared results and of finalizers. Events of event_record
// are checked and then dropped in both modes. The guest goes on as if each write
// had been carried out, but a later read does not show it: an update of an object
// that a dry create has "made" is a 404.
//
// Each write is told to the observer with Exchange.DryRun and Before; none is
// told to the run (abi.Run.Wrote), and Declare neither believes nor remembers
// that one was done: what it declares is tried each time. Nothing is written, so
// that the gate is not asked. DryRunNone undoes it.
func (a *API) WithDryRun(mode DryRun) *API {
	other := *a
	other.dry = mode
	return &other
}

// rehearse is carryOut for a write of a dry run.
func (a *API) rehearse(ctx context.Context, r *request) ([]byte, error) {
	r.DryRun = true
	var before *prior
	if a.observer != nil || a.dry == DryRunClient {
		var err error
		if before, err = a.prior(ctx, r); err != nil {
			return nil, err
		}
		r.before = before.json
	}
	if a.dry == DryRunServer {
		return a.roundTrip(ctx, r)
	}
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	r.sent = body
	after, err := r.outcome(ctx, before, body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(after)
}

// prior is an object as it is before a write.
type prior struct {
	// known says that the API server has told; else we may not read the object,
	// or it has no name yet.
	known  bool
	json   []byte         // nil if it is not there
	object map[string]any // of json
}

// prior reads what a write is about to change.
func (a *API) prior(ctx context.Context, r *request) (*prior, error) {
	if r.key.Name == "" || r.op == abi.OpAPICreate && r.Subresource != "" {
		return &prior{}, nil
	}
	get := &request{op: abi.OpAPIGet, kind: r.kind, key: r.key, ledger: r.ledger}
	if r.Subresource != subresourceStatus { // which is read with its object
		get.Subresource = r.Subresource
	}
	js, err := a.roundTrip(ctx, get)
	switch {
	case apierrors.IsNotFound(err):
		return &prior{known: true}, nil
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		return &prior{}, nil
	case err != nil:
		return nil, err
	}
	if err := r.ledger.takeJSON(js); err != nil {
		return nil, err
	}
	p := &prior{known: true, json: js}
	if err := utiljson.Unmarshal(js, &p.object); err != nil || p.object == nil {
		return nil, errors.Join(errors.New("answer of the API server: not an object"), err)
	}
	return p, nil
}
