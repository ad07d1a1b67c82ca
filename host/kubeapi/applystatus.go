// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

const subresourceStatus = "status"

// applyStatus applies the declared status to the owner, unless the last apply did the same and the
// object has not changed since.
func (a *API) applyStatus(ctx context.Context, o *owner, m *remembered, d *abi.Declared) error {
	r := &request{
		op: abi.OpAPIApply, kind: o.kind, key: o.key, ledger: &o.ledger,
		APIRequest: abi.APIRequest{Subresource: subresourceStatus, Force: d.Force},
	}
	fail := func(err error) *WriteError {
		e := a.writeError(ctx, StepStatus, r, err)
		if e.Reason == "NotFound" {
			e.Class = abi.ErrorConflict // it was deleted: the next run sees that
		}
		return e
	}
	dig := o.digestOf(d.Status, d.Force)
	if o.resourceVersion != "" && m.status == (applied{dig, o.uid, o.resourceVersion}) {
		return nil
	}
	if err := r.setStatus(o, d.Status); err != nil {
		return fail(err)
	}
	r.bind(version{o.uid, o.resourceVersion})
	if err := r.addPreconditions(); err != nil {
		return fail(err)
	}
	if e := a.checkStatus(ctx, o.kind); e != nil {
		e.Key = o.key
		return e
	}
	if denied := a.check(ctx, r, VerbPatch); denied != nil {
		return fail(denied)
	}
	if err := a.confineDeclared(ctx, o, r); err != nil {
		return fail(err)
	}
	first := m.status == applied{}
	m.status = applied{}
	made, err := a.applyDeclared(ctx, o, r, first)
	if err != nil {
		return fail(err)
	}
	m.status = applied{dig, o.uid, made.Metadata.ResourceVersion}
	return nil
}

// setStatus sets the object of the apply.
func (r *request) setStatus(o *owner, packed []byte) error {
	if err := checkValues(packed); err != nil {
		return err
	}
	if err := o.ledger.takePacked(packed); err != nil {
		return err
	}
	status, err := abi.DecodeObject(packed)
	if err != nil {
		return badf("%v", err)
	}
	texts, err := abi.OpaqueTexts(packed)
	if err == nil {
		err = texts.Check()
	}
	if err != nil {
		return badf("%v", err)
	}
	apiVersion, kind := o.kind.GVK().ToAPIVersionAndKind()
	meta := map[string]any{"name": o.key.Name}
	if o.key.Namespace != "" {
		meta["namespace"] = o.key.Namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	if len(status) > 0 { // an empty map would leave null in removed fields
		object["status"] = status
	}
	if texts != nil {
		r.texts = &abi.Texts{Keys: map[string]*abi.Texts{"status": texts}}
	}
	r.object = object
	return nil
}

// checkStatus checks that the kind has a status subresource. Otherwise the API server would
// silently ignore the status in an ordinary apply.
func (a *API) checkStatus(ctx context.Context, kind kinds.Kind) *WriteError {
	known, err := a.cfg.Resolver.ResolveGVK(ctx, kind.GVK())
	if err != nil {
		return a.writeError(ctx, StepStatus, &request{kind: kind}, err)
	}
	if _, ok := known.Subresources[subresourceStatus]; ok {
		return nil
	}
	a.cfg.Resolver.Expire() // its CustomResourceDefinition may get one
	e := a.writeError(ctx, StepStatus, &request{kind: kind}, fmt.Errorf("%s has no status subresource, so the result cannot have a status: "+
		"add \"subresources: {status: {}}\" to its CustomResourceDefinition", kind))
	e.Reason = ReasonNoStatus
	return e
}
