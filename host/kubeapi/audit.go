package kubeapi

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// maxFields bounds how many fields of one write an audit looks at.
const maxFields = 1_000

// Everything returns a policy that allows whatever the API server does: for an
// audit, which finds out what a module uses.
func Everything() *Policy { return &Policy{all: true} }

// WithAudit returns the same API, whose Exchange.Before has what was there before
// an update or a patch, so that Exchange.Fields can tell what it has changed. That
// is one more request for each.
func (a *API) WithAudit() *API {
	other := *a
	other.audits = true
	return &other
}

// look reads the current object before a write of an audit. That it cannot be
// read is no reason not to write.
func (a *API) look(ctx context.Context, r *request) {
	if !a.audits || r.op != abi.OpAPIUpdate && r.op != abi.OpAPIPatch {
		return
	}
	if before, err := a.prior(ctx, r); err == nil {
		r.before = before.json
	}
}

// Fields returns the fields that a write has touched, as docs/capabilities.md
// says, sorted, and of very many the first; those of updates and patches under WithAudit and WithDryRun only.
// They are names: no value of the object is among them but those that items of
// lists are known by.
func (e *Exchange) Fields() []fieldpath.Path {
	touched := fieldpath.Touched(nil)
	switch e.Op { //nolint:exhaustive // others write no fields
	case abi.OpAPICreate, abi.OpAPIApply:
		if sent, err := parseObject(e.Sent); err == nil {
			touched = fieldpath.Changed(nil, sent)
		}
	case abi.OpAPIUpdate, abi.OpAPIPatch:
		before, err := parseObject(e.Before)
		after, err2 := parseObject(e.Answer)
		if err == nil && err2 == nil {
			touched = fieldpath.Changed(before, after).Without(isManagedFields)
		}
	}
	r := &request{op: e.Op, kind: e.Kind, APIRequest: abi.APIRequest{Subresource: e.Subresource}}
	return r.others(touched).Collect(maxFields)
}

// Verbs returns the verbs that an operation takes of a policy.
func (e *Exchange) Verbs() []string {
	if e.Op == abi.OpEventRecord {
		return []string{VerbCreate, VerbPatch}
	}
	return []string{verbs[e.Op]}
}
