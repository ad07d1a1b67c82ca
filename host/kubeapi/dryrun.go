// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
)

// DryRun is the treatment of an API's writes.
type DryRun string

// Values of DryRun.
const (
	// DryRunNone carries writes out.
	DryRunNone DryRun = ""
	// DryRunServer sends each write with dryRun=All. The API server returns the result, including
	// admission and validation, and stores nothing.
	DryRunServer DryRun = "server"
	// DryRunClient sends no writes. It computes an answer from the current object and the request,
	// without validation and defaults. For server-side apply, it knows neither the owners of fields
	// nor the schema's list keys.
	DryRunClient DryRun = "client"
)

// WithDryRun returns the same API with writes that change nothing: those of the guest's calls, of
// declared results and of finalizers. Events of event_record are checked and then discarded in both
// modes. The guest continues as if each write had been carried out, but a later read does not show
// it: after a dry create, an update of the object is a 404.
//
// The observer is notified of each write with Exchange.DryRun and Before.JSON. The run is not
// (abi.Run.Wrote), and Declare remembers nothing, so that it tries each declared change every time.
// The gate is not asked, because nothing is written. DryRunNone restores normal writes.
func (a *API) WithDryRun(mode DryRun) *API {
	other := *a
	other.dry = mode
	return &other
}

// rehearse is carryOut for a write of a dry run.
func (a *API) rehearse(ctx context.Context, r *request) ([]byte, error) {
	r.DryRun = true
	var before *prior
	if a.cfg.Observer != nil || a.dry == DryRunClient {
		var err error
		if before, err = a.prior(ctx, r); err != nil {
			return nil, err
		}
		r.before.JSON = before.json
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

// prior is the state of an object before a write.
type prior struct {
	// known reports whether the API server has returned the state. Otherwise, the module may not
	// read the object, or it has no name yet.
	known  bool
	json   []byte         // nil if it does not exist
	object map[string]any // of json
}

// prior reads the object of a write.
func (a *API) prior(ctx context.Context, r *request) (*prior, error) {
	if r.key.Name == "" || r.op == abi.OpAPICreate && r.Subresource != "" {
		return &prior{}, nil
	}
	get := &request{op: abi.OpAPIGet, kind: r.kind, key: r.key, ledger: r.ledger}
	if r.Subresource != subresourceStatus { // the status is read with its object
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
