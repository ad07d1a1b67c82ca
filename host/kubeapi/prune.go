// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// pruneTries is the maximum number of attempts to delete an object that changes meanwhile.
const pruneTries = 3

// prune deletes the cached children that are not in m, which was just applied. Objects that the
// cache does not have yet are left to the later run that their event causes.
func (a *API) prune(ctx context.Context, o *owner, m *remembered, cached []cachedChild) error {
	keep := make(map[string]bool, len(m.children)) // by UID: one object may be served under two groups
	for _, c := range m.children {
		keep[c.uid] = true
	}
	var doomed []*request
	deleted := map[string]bool{}
	for _, c := range cached {
		_, listed := m.children[childRef{c.gvr.GroupResource(), c.key}]
		switch {
		case listed || keep[c.uid]:
		case m.deleted[c.uid]:
			deleted[c.uid] = true
		default:
			r := c.deletion()
			if denied := a.check(ctx, r, VerbDelete); denied != nil {
				return a.writeError(ctx, StepPrune, r, denied)
			}
			doomed = append(doomed, r)
		}
	}
	m.deleted = deleted
	for _, r := range doomed {
		if err := a.pruneOne(ctx, o, r); err != nil {
			return a.writeError(ctx, StepPrune, r, err)
		}
		deleted[r.Preconditions.UID] = true
	}
	return nil
}

// deletion returns the request that deletes exactly this child in its cached state, and no other
// object of its name.
func (c *cachedChild) deletion() *request {
	return &request{
		op: abi.OpAPIDelete, key: c.key,
		kind: kinds.Kind{Group: c.gvr.Group, Version: c.gvr.Version, Resource: c.gvr.Resource, Namespaced: c.key.Namespace != ""},
		APIRequest: abi.APIRequest{
			PropagationPolicy: string(metav1.DeletePropagationBackground),
			Preconditions:     &abi.Preconditions{UID: c.uid, ResourceVersion: c.resourceVersion},
		},
	}
}

// pruneOne deletes a child. If it has changed since the cache saw it, it is checked once more,
// because it may have another controller.
func (a *API) pruneOne(ctx context.Context, o *owner, r *request) error {
	var err error
	r.ledger = &o.ledger
	defer r.ledger.rewind(r.ledger.mark())
	for range pruneTries {
		_, err = a.exchange(ctx, r)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		live, getErr := a.read(ctx, r)
		switch {
		case apierrors.IsNotFound(getErr):
			return nil
		case apierrors.IsForbidden(getErr):
			return err // a later run with a newer cache decides
		case getErr != nil:
			return getErr
		case string(live.UID) != r.Preconditions.UID || !o.controls(live):
			return nil
		}
		r.Preconditions.ResourceVersion = live.ResourceVersion
	}
	return err
}
