// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
	"github.com/wasmctl/wasmctl/internal/managed"
)

// settled returns the children whose cached version is the result of their last apply: the same
// request would change nothing.
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

// current returns the cached children that are not older than their last apply. An older one proves nothing: the
// predicates of its watch may ignore the event of that apply, so that no later run would send the omitted one.
func (m *remembered) current(cached []cachedChild) map[childRef]version {
	current := make(map[childRef]version, len(cached))
	for i := range cached {
		c := &cached[i]
		ref := childRef{c.gvr.GroupResource(), c.key}
		if last, known := m.children[ref]; known && last.resourceVersion != c.resourceVersion {
			if newer, err := resourceversion.CompareResourceVersion(c.resourceVersion, last.resourceVersion); err != nil || newer < 0 {
				continue
			}
		}
		current[ref] = version{c.uid, c.resourceVersion}
	}
	return current
}

// applyAll applies the children. After success, m has exactly these children.
func (a *API) applyAll(ctx context.Context, o *owner, m *remembered, children []child) error {
	listed := make(map[childRef]applied, len(children))
	for i := range children {
		c := &children[i]
		switch r := c.request; {
		case r == nil: // its last apply is that of the child
		case r.proved != (version{}):
			m.children[c.ref] = applied{c.digest, r.proved.UID, r.proved.ResourceVersion}
		default:
			if err := a.applyChild(ctx, o, m, c); err != nil {
				return err.at(i)
			}
		}
		listed[c.ref] = m.children[c.ref]
	}
	m.children, m.send = listed, false
	return nil
}

// applyChild sends the apply of a child, and remembers its result.
func (a *API) applyChild(ctx context.Context, o *owner, m *remembered, c *child) *WriteError {
	r := c.request
	_, known := m.children[c.ref]
	delete(m.children, c.ref) // whatever the result, the remembered request is no longer the last one
	mark := r.ledger.mark()
	var made applyResult
	err := a.claim(ctx, o, c, !known)
	if err == nil {
		made, err = a.applyDeclared(ctx, o, r, !known)
	}
	if err != nil {
		return a.applyError(ctx, o, r, err)
	}
	if !known && !r.created {
		a.missManagers(r, made.Metadata.ManagedFields)
	}
	m.children[c.ref] = applied{c.digest, made.Metadata.UID, made.Metadata.ResourceVersion}
	r.object = nil
	r.ledger.rewind(mark)
	return nil
}

// unchanged returns the version in the cache of a child that an apply would not change, or zero if it
// would, or if the cache cannot prove that. The proof needs the fields of the last apply: the child
// must have the same ones, with the values in the cache. If the object has changed since, its event is
// on its way and causes another run, because the module owns the kind.
func (a *API) unchanged(o *owner, r *request) version {
	if a.cfg.Cache == nil || a.dry != DryRunNone || r.texts != nil || len(a.cfg.FormerManagers) > 0 {
		return version{}
	}
	cached, complete := a.cfg.Cache.Stored(r.kind.GVR(), r.key)
	if cached == nil || !complete {
		return version{}
	}
	at := version{cached.UID(), cached.ResourceVersion()}
	if at != o.current[r.ref()] {
		return version{}
	}
	var fields string
	for e := range managed.Entries(cached.Applied(), o.uid) {
		switch {
		case e.Manager != a.manager:
		case !e.Applied: // applyDeclared takes its fields over
			return version{}
		case e.APIVersion == r.kind.GVK().GroupVersion().String():
			fields = e.Fields
		}
	}
	if fields == "" {
		return version{}
	}
	own, err := abi.DecodeObject([]byte(fields))
	if err != nil {
		return version{}
	}
	sent := r.object
	if _, ok := r.kind.Subresources[subresourceStatus]; ok && sent[subresourceStatus] != nil { // an apply ignores it
		sent = maps.Clone(sent)
		delete(sent, subresourceStatus)
	}
	live, err := abi.DecodeObject(cached.Msgpack())
	if err != nil || !fieldpath.Unchanged(own, sent, live) {
		return version{}
	}
	return at
}

// applyError is writeError for a child. The API server refuses an apply that would give an object a
// second controller. In this case, the error names the first one.
func (a *API) applyError(ctx context.Context, o *owner, r *request, err error) *WriteError {
	if refusedOwners(err) {
		if live, readErr := a.read(ctx, r); readErr == nil && metav1.GetControllerOfNoCopy(live) != nil && !o.controls(live) {
			err = &foreignError{*metav1.GetControllerOfNoCopy(live), err} // its controller may release it
		}
	}
	if _, ok := errors.AsType[*foreignError](err); ok {
		a.contested.add(r.ref(), o.key)
	}
	return a.writeError(ctx, StepApply, r, err)
}

// refusedOwners reports whether the API server refused the owner references of an object.
func refusedOwners(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.ownerReferences" })
}

// read reads the metadata of a request's object from the API server.
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
