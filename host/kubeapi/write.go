package kubeapi

import (
	"context"
	"encoding/json"

	"github.com/wasmctl/wasmctl/abi"
)

// Gate says for how long this process may write: the context of a lease, say,
// which ends when the lease is lost. Once closed it never opens again.
type Gate = context.Context

// errGateClosed is why a write was refused or interrupted.
var errGateClosed = &refusal{status: abi.StatusCancelled, message: "no longer leader: this process can no longer write"}

// enter asks the gate whether a write may start, and returns a context for it
// that ends with ctx and as soon as the gate closes. The caller calls done when
// the write is over. Without a gate everything may be written.
func enter(ctx context.Context, gate Gate) (open context.Context, done func(), err error) {
	if gate == nil {
		return ctx, func() {}, nil
	}
	if gate.Err() != nil {
		return nil, nil, errGateClosed
	}
	open, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(gate, func() { cancel(errGateClosed) })
	return open, func() { stop(); cancel(nil) }, nil
}

// answered is what is read of the answer to a write: an object, or, for most
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

// notify tells the run that ctx carries of a write that the API server has
// accepted.
func (a *API) notify(ctx context.Context, r *request, js []byte) {
	run := abi.RunFrom(ctx)
	if run == nil || run.Wrote == nil || r.DryRun {
		return
	}
	var body answered
	if err := json.Unmarshal(js, &body); err != nil {
		body = answered{} // the answer of an aggregated API; the write counts all the same
	}
	w := abi.Write{
		Op: r.op, Group: r.kind.Group, Version: r.kind.Version, Resource: r.kind.Resource, Subresource: r.Subresource,
		Key: r.key, FieldManager: a.managerOf(r), Body: js,
		Deleted: r.op == abi.OpAPIDelete || body.Metadata.DeletionTimestamp != "",
	}
	if body.Kind == "Status" {
		w.UID = body.Details.UID
	} else {
		w.UID, w.ResourceVersion, w.Labels = body.Metadata.UID, body.Metadata.ResourceVersion, body.Metadata.Labels
		if w.Key.Name == "" {
			w.Key.Name = body.Metadata.Name // the API server has made it up
		}
	}
	run.Wrote(w)
}
