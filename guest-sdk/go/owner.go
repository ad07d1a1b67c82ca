// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// OwnerReference is an entry of metadata.ownerReferences.
type OwnerReference struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Controller         bool   `json:"controller,omitempty"`
	BlockOwnerDeletion bool   `json:"blockOwnerDeletion,omitempty"`
}

// AppendMsgpack writes the reference in the form of the Kubernetes API.
func (r OwnerReference) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	if err := b.Texts("apiVersion", r.APIVersion, "kind", r.Kind, "name", r.Name, "uid", r.UID); err != nil {
		return nil, err
	}
	b.Bool("controller", r.Controller)
	b.Bool("blockOwnerDeletion", r.BlockOwnerDeletion)
	return b.End(), nil
}

// ControllerRef returns the reference that makes o the controlling owner of
// another object. Then the garbage collector deletes that object with o, and a
// change of that object reconciles o.
func (o Object) ControllerRef() OwnerReference {
	r := o.OwnerRef()
	r.Controller, r.BlockOwnerDeletion = true, true
	return r
}

// OwnerRef returns the reference that makes o one of several owners. Only the
// garbage collector uses it.
func (o Object) OwnerRef() OwnerReference {
	ref := o.Ref()
	return OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: o.UID()}
}

// OwnerReferences returns the owners of o.
func (o Object) OwnerReferences() []OwnerReference {
	var list []OwnerReference
	for it := wire.Walk(wire.At(o.view, []string{"metadata", "ownerReferences"})); it.Next(); {
		v := Value{it.Value}
		list = append(list, OwnerReference{
			APIVersion: v.String("apiVersion"), Kind: v.String("kind"), Name: v.String("name"), UID: v.String("uid"),
			Controller: v.Bool("controller"), BlockOwnerDeletion: v.Bool("blockOwnerDeletion"),
		})
	}
	return list
}

// Controller returns the owner that controls o, and whether there is one.
func (o Object) Controller() (OwnerReference, bool) {
	for _, r := range o.OwnerReferences() {
		if r.Controller {
			return r, true
		}
	}
	return OwnerReference{}, false
}

// IsControlledBy reports whether owner is the controlling owner of o. As in
// client-go, the UID decides: an owner that was deleted and created again is a
// different owner.
func (o Object) IsControlledBy(owner Object) bool {
	r, ok := o.Controller()
	return ok && r.UID == owner.UID()
}

// SetController makes owner the controlling owner of o; see ControllerRef. It
// returns a permanent error, and does not change o, in two cases:
//
//   - Another object controls o (reason "NotOwned").
//   - owner has a namespace and o is not in it (reason "CrossNamespaceOwner").
//     The garbage collector would delete o at once.
func (o *Object) SetController(owner Object) error {
	if c, ok := o.Controller(); ok && c.UID != owner.UID() {
		err := errors.New(o.Ref().String() + ": is controlled by " + c.Kind + " " + c.Name)
		return WithReason(Permanent(err), "NotOwned")
	}
	return o.setOwner(owner, owner.ControllerRef())
}

// SetOwner makes owner one of several owners of o; see OwnerRef. An owner in
// another namespace is an error as in SetController.
func (o *Object) SetOwner(owner Object) error { return o.setOwner(owner, owner.OwnerRef()) }

func (o *Object) setOwner(owner Object, ref OwnerReference) error {
	if ns := owner.Namespace(); ns != "" && ns != o.Namespace() {
		err := errors.New(o.Ref().String() + ": cannot be owned by " + owner.Ref().String() + ", which is not in its namespace")
		return WithReason(Permanent(err), "CrossNamespaceOwner")
	}
	refs := o.OwnerReferences()
	for i := range refs {
		if refs[i].UID == ref.UID {
			refs[i] = ref
			return o.Set(refs, "metadata", "ownerReferences")
		}
	}
	return o.Set(append(refs, ref), "metadata", "ownerReferences")
}
