// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"

	"github.com/wasmctl/wasmctl/abi"
)

// Gate decides when this process may write.
type Gate interface {
	// Period returns a context that is canceled when the process must no longer write. Each write
	// asks for it, because a later period can begin.
	Period() context.Context
}

// errGateClosed is the reason for a refused or interrupted write.
var errGateClosed = &refusal{status: abi.StatusCancelled, message: "no valid lease: this process cannot write"}

// enter asks the gate whether a write may start. It returns a context for the write that ends with
// ctx or when the gate closes. The caller must call done after the write. Without a gate, every
// write may start.
func enter(ctx context.Context, gate Gate) (open context.Context, done func(), err error) {
	if gate == nil {
		return ctx, func() {}, nil
	}
	period := gate.Period()
	if period.Err() != nil {
		return nil, nil, errGateClosed
	}
	open, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(period, func() { cancel(errGateClosed) })
	return open, func() { stop(); cancel(nil) }, nil
}

// answered has the fields that are read from the answer to a write: an object or, for most
// deletions, a Status.
type answered struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Details struct {
		UID string `json:"uid"`
	} `json:"details"`
}

// notify tells the run of ctx about a write that the API server has accepted.
func (a *API) notify(ctx context.Context, r *request, js []byte) {
	run := abi.RunFrom(ctx)
	if run == nil || run.Wrote == nil || r.DryRun {
		return
	}
	var body answered
	if err := json.Unmarshal(js, &body); err != nil {
		body = answered{} // the answer of an aggregated API; the write still counts
	}
	w := abi.Write{
		Op: r.op, Group: r.kind.Group, Version: r.kind.Version, Resource: r.kind.Resource, Subresource: r.Subresource,
		Key: r.key, FieldManager: a.managerOf(r), Body: js,
		Deleted: r.op == abi.OpAPIDelete || body.Metadata.DeletionTimestamp != "",
	}
	if body.Kind == "Status" {
		w.UID = body.Details.UID
	} else {
		a.compare(r, body.Metadata.ResourceVersion)
		w.UID, w.ResourceVersion, w.Labels = body.Metadata.UID, body.Metadata.ResourceVersion, body.Metadata.Labels
		if w.Key.Name == "" {
			w.Key.Name = body.Metadata.Name // the API server has generated it
		}
	}
	run.Wrote(w)
}
