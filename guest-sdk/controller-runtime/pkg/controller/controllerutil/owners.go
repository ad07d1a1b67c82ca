// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// AlreadyOwnedError means that another object already controls an object.
type AlreadyOwnedError struct {
	Object metav1.Object
	Owner  metav1.OwnerReference
}

// Error implements error.
func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("object[%s]: already has a controller: %s %s", name(e.Object), e.Owner.Kind, e.Owner.Name)
}

// OwnerReferenceOption changes a reference before it is set.
type OwnerReferenceOption func(*metav1.OwnerReference)

// WithBlockOwnerDeletion sets blockOwnerDeletion.
func WithBlockOwnerDeletion(blockOwnerDeletion bool) OwnerReferenceOption {
	return func(ref *metav1.OwnerReference) { ref.BlockOwnerDeletion = &blockOwnerDeletion }
}

// SetControllerReference makes owner the controller of controlled. It replaces
// an older reference to the same owner. If controlled has another controller,
// it returns an *AlreadyOwnedError.
func SetControllerReference(owner, controlled metav1.Object, scheme *runtime.Scheme, opts ...OwnerReferenceOption) error {
	ref, err := reference(owner, controlled, scheme)
	if err != nil {
		return err
	}
	yes := true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &yes
	for _, opt := range opts {
		opt(&ref)
	}
	if has := metav1.GetControllerOf(controlled); has != nil && !sameOwner(*has, ref) {
		return &AlreadyOwnedError{Object: controlled, Owner: *has}
	}
	upsert(ref, controlled)
	return nil
}

// SetOwnerReference makes owner one of the owners of object.
func SetOwnerReference(owner, object metav1.Object, scheme *runtime.Scheme, opts ...OwnerReferenceOption) error {
	ref, err := reference(owner, object, scheme)
	if err != nil {
		return err
	}
	for _, opt := range opts {
		opt(&ref)
	}
	upsert(ref, object)
	return nil
}

// RemoveOwnerReference removes the reference to owner. It returns an error if
// there is none.
func RemoveOwnerReference(owner, object metav1.Object, scheme *runtime.Scheme) error {
	gvk, err := kindOf(owner, scheme)
	if err != nil {
		return err
	}
	ref := metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName()}
	refs := object.GetOwnerReferences()
	i := indexOf(refs, ref)
	if i < 0 {
		return fmt.Errorf("object[%s]: %s %s is not an owner of it", name(object), gvk.Kind, owner.GetName())
	}
	object.SetOwnerReferences(slices.Delete(slices.Clone(refs), i, i+1))
	return nil
}

// RemoveControllerReference removes the reference to owner, which must be the
// controller of object.
func RemoveControllerReference(owner, object metav1.Object, scheme *runtime.Scheme) error {
	if !HasControllerReference(object) {
		return fmt.Errorf("object[%s]: has no controller", name(object))
	}
	gvk, err := kindOf(owner, scheme)
	if err != nil {
		return err
	}
	ref := metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName()}
	if has := metav1.GetControllerOf(object); has == nil || !sameOwner(*has, ref) {
		return fmt.Errorf("object[%s]: %s %s is not its controller", name(object), gvk.Kind, owner.GetName())
	}
	return RemoveOwnerReference(owner, object, scheme)
}

// HasControllerReference reports whether object has a controller.
func HasControllerReference(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), isController)
}

// HasOwnerReference reports whether one of the references refers to obj.
func HasOwnerReference(ownerRefs []metav1.OwnerReference, obj client.Object, scheme *runtime.Scheme) (bool, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return false, err
	}
	ref := metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: obj.GetName()}
	return indexOf(ownerRefs, ref) >= 0, nil
}

func isController(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller }

// reference returns the owner reference of object to owner, if it is valid.
func reference(owner, object metav1.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	gvk, err := kindOf(owner, scheme)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	switch from, to := object.GetNamespace(), owner.GetNamespace(); {
	case to != "" && from == "":
		return metav1.OwnerReference{}, fmt.Errorf("object[%s]: has no namespace, so %s %s in namespace %s cannot own it", name(object), gvk.Kind, owner.GetName(), to)
	case to != "" && from != to:
		return metav1.OwnerReference{}, fmt.Errorf("object[%s]: %s %s in another namespace, %s, cannot own it", name(object), gvk.Kind, owner.GetName(), to)
	}
	return metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID()}, nil
}

func kindOf(owner metav1.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if owner == nil {
		return schema.GroupVersionKind{}, errors.New("owner: is nil")
	}
	obj, ok := owner.(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, fmt.Errorf("object[%s]: %T is not a runtime.Object, so it cannot own anything", name(owner), owner)
	}
	return apiutil.GVKForObject(obj, scheme)
}

// upsert replaces the reference to the same owner by ref, or adds ref.
func upsert(ref metav1.OwnerReference, object metav1.Object) {
	refs := slices.Clone(object.GetOwnerReferences())
	if i := indexOf(refs, ref); i >= 0 {
		refs[i] = ref
	} else {
		refs = append(refs, ref)
	}
	object.SetOwnerReferences(refs)
}

func indexOf(refs []metav1.OwnerReference, ref metav1.OwnerReference) int {
	return slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return sameOwner(r, ref) })
}

// sameOwner reports whether two references refer to the same object, regardless
// of the version of its group.
func sameOwner(a, b metav1.OwnerReference) bool {
	ga, errA := schema.ParseGroupVersion(a.APIVersion)
	gb, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && ga.Group == gb.Group && a.Kind == b.Kind && a.Name == b.Name
}

func name(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
