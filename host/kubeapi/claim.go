// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// holding is the state of a child that decides whether the owner may become its controller.
type holding struct {
	version    string                 // neverVersion if the child does not exist
	controller *metav1.OwnerReference // nil if it has none
}

// claim refuses the apply of a child if another object that may exist controls it. first means that this
// process has not applied the request before.
//
// All objects of a controller share one field manager. So if two of them declare the same child, the API
// server does not refuse a second controller, but replaces the reference to the first. The host therefore
// looks at the child before it applies it. An apply that changes the controller is bound to the version
// that the host has seen. A child that the cache does not have is looked up only for the first apply.
func (a *API) claim(ctx context.Context, o *owner, c *child, first bool) error {
	if a.cfg.Cache == nil {
		return nil
	}
	r := c.request
	h, err := a.holdingOf(ctx, r, first)
	switch {
	case err != nil:
		return err
	case h == nil || h.controller != nil && string(h.controller.UID) == o.uid:
		return nil
	case h.controller != nil && a.mayExist(o, r, h.controller):
		return &foreignError{*h.controller, r.conflict("it has another controller")}
	case a.dry != DryRunNone:
		return nil
	}
	return r.bindTo(o, c.packed, h.version)
}

// holdingOf returns the state of a child, or nil if it is not known. It is that in the cache, unless the
// apply was judged against another one. For the first apply of any other child, the API server is asked.
func (a *API) holdingOf(ctx context.Context, r *request, first bool) (*holding, error) {
	cached, complete := a.cfg.Cache.Stored(r.kind.GVR(), r.key)
	version := neverVersion
	if cached != nil {
		version = cached.ResourceVersion()
	}
	judged := r.pins.version
	switch {
	case (cached != nil || complete && first) && (judged == "" || judged == version):
		return cachedHolding(cached, version)
	case !first || a.dry != DryRunNone:
		return nil, nil
	}
	js, err := a.present(ctx, r)
	if apierrors.IsNotFound(err) {
		return &holding{version: neverVersion}, nil
	}
	var live metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal(js, &live)
	}
	if err != nil {
		return nil, err
	}
	r.found = js
	return &holding{live.ResourceVersion, metav1.GetControllerOfNoCopy(&live)}, nil
}

// cachedHolding returns the state of a child from the cache. A nil child does not exist.
func cachedHolding(child abi.Stored, version string) (*holding, error) {
	var meta metav1.ObjectMeta
	if child != nil {
		d := msgpack.NewDecoder(bytes.NewReader(packed.Find(child.Msgpack(), "metadata")))
		d.SetCustomStructTag("json")
		var references struct {
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		}
		if err := d.Decode(&references); err != nil {
			return nil, fmt.Errorf("object: %w", err)
		}
		meta.OwnerReferences = references.OwnerReferences
	}
	return &holding{version, metav1.GetControllerOfNoCopy(&meta)}, nil
}

// mayExist reports whether the controller of a child may still exist. It is gone if the cache has another
// object of its name, or would have it. An object of another kind may always exist.
func (a *API) mayExist(o *owner, r *request, controller *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || gv.WithKind(controller.Kind).GroupKind() != o.kind.GVK().GroupKind() {
		return true
	}
	key := abi.Key{Name: controller.Name}
	if o.kind.Namespaced {
		key.Namespace = r.key.Namespace
	}
	if key == o.key {
		return false // o has another UID
	}
	now, complete := a.cfg.Cache.Stored(o.kind.GVR(), key)
	if now == nil {
		return !complete
	}
	return now.UID() == string(controller.UID)
}

// bindTo binds the apply of a child to a version of it. child is the child in the guest's encoding.
func (r *request) bindTo(o *owner, child []byte, version string) error {
	if r.pins.version != "" && r.pins.version != version {
		return r.conflict("it has changed since it was judged")
	}
	r.pins.version, r.pins.claimed = version, true
	if r.object != nil {
		return nil
	}
	r.encoded = nil
	if err := r.ledger.takePacked(child); err != nil {
		return err
	}
	return r.unpackChild(o, child)
}

// foreignError is the refusal to apply a child that another object controls.
type foreignError struct {
	controller metav1.OwnerReference
	err        error // in the words of the API server
}

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("it is controlled by %s %s (uid %s): delete it, or give the child another name",
		e.controller.Kind, e.controller.Name, e.controller.UID)
}

// Unwrap returns a conflict, or the error of the API server.
func (e *foreignError) Unwrap() error { return e.err }
