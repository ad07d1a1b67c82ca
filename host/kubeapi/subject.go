// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// versionIn is versionOf for a packed object.
func versionIn(object []byte) (v version) {
	c := packed.At(packed.Find(object, "metadata"))
	for range c.MapLen() {
		switch string(c.Text()) {
		case "uid":
			v.UID = string(c.Text())
		case "resourceVersion":
			v.ResourceVersion = string(c.Text())
		default:
			c.Skip()
		}
	}
	return v
}

// subjectOf returns the object that a run is about, if a request is about it. A later object with the same
// name is another one.
func (a *API) subjectOf(ctx context.Context, r *request) (subject version, ok bool) {
	run := abi.RunFrom(ctx)
	if run == nil || r.key != run.Key || r.kind.Group != a.cfg.Reconciled.Group || r.kind.Resource != a.cfg.Reconciled.Resource {
		return subject, false
	}
	subject = versionIn(run.Object)
	return subject, subject.UID != ""
}

// bind adds the UID of the subject to a write that names the object but no UID. Where the API server
// would ignore a UID, the write also gets the version that the run has seen.
func (r *request) bind(subject version) {
	if r.op == abi.OpAPICreate || !slices.Contains(opsWrite, r.op) && r.op != abi.OpAPIDelete {
		return
	}
	if r.wantedUID() == "" {
		p := abi.Preconditions{}
		if r.Preconditions != nil {
			p = *r.Preconditions
		}
		p.UID = subject.UID
		r.Preconditions = &p
	}
	if r.wantedUID() == subject.UID && r.ignoresUID() && !r.wantsVersion() {
		r.pins.version = subject.ResourceVersion
	}
}

// ignoresUID reports whether the API server ignores the UID in a write: that of a custom resource in a
// patch or an apply of its status.
func (r *request) ignoresUID() bool {
	return r.Subresource == subresourceStatus && !r.kind.BuiltIn() && (r.op == abi.OpAPIPatch || r.op == abi.OpAPIApply)
}

// pinUID binds a write to the version of the object that has the wanted UID, if the API server would
// ignore the UID.
func (a *API) pinUID(ctx context.Context, r *request) error {
	uid := r.wantedUID()
	if uid == "" || !r.ignoresUID() || r.wantsVersion() {
		return nil
	}
	if r.pins.version == "" {
		defer r.ledger.rewind(r.ledger.mark())
		before, err := a.prior(ctx, r)
		switch {
		case err != nil:
			return err
		case !before.known:
			return r.conflict("the object may have changed: its uid cannot be compared without the right to get it")
		case before.object == nil:
			return apierrors.NewNotFound(r.kind.GVR().GroupResource(), r.key.Name)
		}
		at := versionOf(before.object)
		r.pins.uid, r.pins.version = at.UID, at.ResourceVersion
	} else if r.pins.uid == "" {
		return nil // it is the version of the subject
	}
	if r.pins.uid != uid {
		return r.replaced("precondition failed: the object was deleted and recreated: its uid is not %s", shorten(uid))
	}
	return nil
}

// replacedError is the conflict of a write on behalf of an object that was deleted.
type replacedError struct{ *apierrors.StatusError }

// Unwrap returns the conflict.
func (e *replacedError) Unwrap() error { return e.StatusError }

func (r *request) replaced(format string, args ...any) error {
	return &replacedError{r.conflict(format, args...)}
}

// conflict returns the API server's error for a write of another state of the object than the expected
// one.
func (r *request) conflict(format string, args ...any) *apierrors.StatusError {
	return apierrors.NewConflict(r.kind.GVR().GroupResource(), r.key.Name, fmt.Errorf(format, args...))
}

// outlived refuses a write of a run whose object was deleted. If another object has its name since,
// nothing is written. Otherwise, only an object that the deleted one would own is refused: it would be
// garbage.
func (a *API) outlived(ctx context.Context, r *request) error {
	run := abi.RunFrom(ctx)
	if run == nil || a.cfg.Cache == nil || run.Key.Name == "" {
		return nil
	}
	uid := versionIn(run.Object).UID
	if uid == "" && run.Object != nil {
		return nil
	}
	switch now, complete := a.cfg.Cache.Stored(a.cfg.Reconciled.GVR(), run.Key); {
	case now == nil && complete && uid != "" && r.ownedBy(uid):
		return r.replaced("%s %s, which would own it, was deleted", a.cfg.Reconciled.Kind, run.Key)
	case now == nil || now.UID() == uid:
		return nil
	case uid == "":
		return r.replaced("%s %s, which this run sees as deleted, was recreated", a.cfg.Reconciled.Kind, run.Key)
	default:
		return r.replaced("%s %s, which this run is about, was deleted and recreated", a.cfg.Reconciled.Kind, run.Key)
	}
}

// ownedBy reports whether a write gives its object an owner with this UID.
func (r *request) ownedBy(uid string) bool {
	if r.owner != "" {
		return r.owner == uid
	}
	meta, _ := r.object["metadata"].(map[string]any)
	owners, _ := meta["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(o any) bool {
		owner, _ := o.(map[string]any)
		return owner["uid"] == uid
	})
}
