package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// settled lists the children of which the cache has what their last apply led
// to: the same request again would change nothing.
func (m *remembered) settled(cached []cachedChild) map[digest]childRef {
	versions := make(map[string]string, len(cached))
	for i := range cached {
		versions[cached[i].uid] = cached[i].resourceVersion
	}
	settled := make(map[digest]childRef, len(m.children))
	for ref, last := range m.children {
		if last.resourceVersion != "" && versions[last.uid] == last.resourceVersion {
			settled[last.digest] = ref
		}
	}
	return settled
}

// applyAll applies the children; after success, m knows these children and no
// other.
func (a *API) applyAll(ctx context.Context, o *owner, m *remembered, children []child) error {
	listed := make(map[childRef]applied, len(children))
	for i := range children {
		c := &children[i]
		if c.request != nil {
			delete(m.children, c.ref) // whatever comes of it, the last request is no longer the last
			mark := c.request.ledger.mark()
			js, err := a.exchangeJudged(ctx, c.request)
			if err != nil {
				return a.applyError(ctx, o, c.request, err).at(i)
			}
			var made answered
			if err := json.Unmarshal(js, &made); err != nil {
				return a.writeError(ctx, StepApply, c.request, err).at(i)
			}
			m.children[c.ref] = applied{c.digest, made.Metadata.UID, made.Metadata.ResourceVersion}
			c.request.ledger.rewind(mark)
		}
		listed[c.ref] = m.children[c.ref]
	}
	m.children = listed
	return nil
}

// applyError is writeError for a child. The API server lets no object have two
// controllers, and refuses an apply that would give it a second one whole:
// where that is what happened, the error names the first.
func (a *API) applyError(ctx context.Context, o *owner, r *request, err error) *WriteError {
	if !refusedOwners(err) {
		return a.writeError(ctx, StepApply, r, err)
	}
	live, readErr := a.read(ctx, r)
	if readErr != nil {
		return a.writeError(ctx, StepApply, r, err)
	}
	other := metav1.GetControllerOfNoCopy(live)
	e := a.writeError(ctx, StepApply, r, err)
	if other != nil && string(other.UID) != o.uid {
		e.Class, e.Reason = abi.ErrorConflict, ReasonForeignController // its controller may let it go
		e.Err = &reworded{err: err, text: fmt.Sprintf("it is controlled by %s %s (uid %s): delete it, or give the child another name",
			other.Kind, other.Name, other.UID)}
	}
	return e
}

// refusedOwners reports whether the API server found fault with the owner
// references of an object.
func refusedOwners(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.ownerReferences" })
}

// read reads the metadata of the object of a request from the API server.
func (a *API) read(ctx context.Context, r *request) (*metav1.ObjectMeta, error) {
	js, err := a.exchange(ctx, &request{op: abi.OpAPIGet, kind: r.kind, key: r.key, ledger: r.ledger})
	if err != nil {
		return nil, err
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(js, &object); err != nil {
		return nil, err
	}
	return &object.ObjectMeta, nil
}
