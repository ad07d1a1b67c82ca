// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// maxFields is the maximum number of fields of one write in an audit.
const maxFields = 1_000

// Everything returns a policy that allows everything, for an audit that determines the rights that
// a module uses.
func Everything() *Policy { return &Policy{all: true} }

// WithAudit returns the same API, which sets Exchange.Before.JSON to the object before an update or a
// patch, so that Exchange.Fields can find the changes. That costs one more request for each.
func (a *API) WithAudit() *API {
	other := *a
	other.audits = true
	return &other
}

// look reads the current object before a write of an audit. If that fails, the write still happens.
func (a *API) look(ctx context.Context, r *request) {
	if !a.audits || r.op != abi.OpAPIUpdate && r.op != abi.OpAPIPatch {
		return
	}
	if before, err := a.prior(ctx, r); err == nil {
		r.before.JSON = before.json
	}
}

// Fields returns the fields that a write has touched, as defined in docs/capabilities.md, sorted
// and limited in number. For updates and patches, it needs WithAudit or WithDryRun. The paths have
// names, and no values of the object except those that identify items of lists.
func (e *Exchange) Fields() []fieldpath.Path {
	touched := fieldpath.Touched(nil)
	switch e.Op { //nolint:exhaustive // others write no fields
	case abi.OpAPICreate, abi.OpAPIApply:
		if sent, err := parseObject(e.Sent); err == nil {
			touched = fieldpath.Changed(nil, sent)
		}
	case abi.OpAPIUpdate, abi.OpAPIPatch:
		before, err := parseObject(e.Before.JSON)
		after, err2 := parseObject(e.Answer)
		if err == nil && err2 == nil {
			touched = fieldpath.Changed(before, after).Without(isManagedFields)
		}
	}
	r := &request{op: e.Op, kind: e.Kind, APIRequest: abi.APIRequest{Subresource: e.Subresource}}
	return r.others(touched).Collect(maxFields)
}

// Verbs returns the verbs that an operation needs.
func (e *Exchange) Verbs() []string {
	if e.Op == abi.OpEventRecord {
		return []string{VerbCreate, VerbPatch}
	}
	return []string{verbs[e.Op]}
}
