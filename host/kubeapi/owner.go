// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Owner is the object of a declared result: the controller of its children, and the object whose
// status is applied.
type Owner struct {
	Kind kinds.Kind
	// Object is the object's msgpack as the run saw it.
	Object []byte
}

// owner is a decoded Owner.
type owner struct {
	kind            kinds.Kind
	key             abi.Key
	uid             string
	resourceVersion string
	// foreground reports whether the garbage collector is deleting its children, and deletes it afterwards.
	foreground bool
	// current has the cached children that can prove that an apply changes nothing; see remembered.current.
	current map[childRef]version
	// ledger counts the memory of its declared result.
	ledger ledger
	// hash computes the digests of its children, each of which begins with salt.
	hash hash.Hash
	salt []byte
	sum  digest // reused
}

func (o Owner) read() (*owner, error) {
	p, err := unpack(o.Object)
	if err != nil {
		return nil, err
	}
	if p.Metadata.Name == "" || p.Metadata.UID == "" {
		return nil, errors.New("object: has no name or no uid, so it cannot own objects")
	}
	return &owner{
		kind: o.Kind, key: p.key(), uid: p.Metadata.UID, resourceVersion: p.Metadata.ResourceVersion,
		foreground: slices.Contains(p.Metadata.Finalizers, metav1.FinalizerDeleteDependents),
		hash:       sha256.New(), salt: fmt.Appendf(nil, "%s %s ", o.Kind, p.Metadata.UID),
	}, nil
}

// reference returns the owner reference that makes o the controller of an object. Like
// controller-runtime's SetControllerReference, it blocks the owner's foreground deletion.
func (o *owner) reference() map[string]any {
	apiVersion, kind := o.kind.GVK().ToAPIVersionAndKind()
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "name": o.key.Name, "uid": o.uid, "controller": true, "blockOwnerDeletion": true,
	}
}

// controls reports whether o is the controller of an object.
func (o *owner) controls(object *metav1.ObjectMeta) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && string(controller.UID) == o.uid
}

// own makes o the controller of a child. Other owner references of the child stay. Errors are
// badRequest.
func (o *owner) own(meta map[string]any) error {
	references := []any{}
	switch given := meta["ownerReferences"].(type) {
	case nil:
	case []any:
		for _, r := range given {
			reference, ok := r.(map[string]any)
			if !ok {
				return badf("metadata.ownerReferences: must be a list of maps")
			}
			if reference["uid"] == o.uid {
				continue // ours has more fields
			}
			if reference["controller"] == true {
				return badf("metadata.ownerReferences: %v is set as controller, but the reconciled object is the controller: omit controller", reference["name"])
			}
			references = append(references, reference)
		}
	default:
		return badf("metadata.ownerReferences: must be a list")
	}
	meta["ownerReferences"] = append(references, o.reference())
	return nil
}

// place returns the namespace of a child. Errors are badRequest: an owner reference has no
// namespace, so a child cannot be outside the owner's.
func (o *owner) place(kind kinds.Kind, namespace string) (string, error) {
	switch {
	case !kind.Namespaced && o.kind.Namespaced:
		return "", badf("%s is cluster-scoped, and the namespaced %s %s cannot own it: an owner reference has no namespace", kind.Kind, o.kind.Kind, o.key)
	case !kind.Namespaced && namespace != "":
		return "", badf("metadata.namespace: %s is cluster-scoped: omit the namespace", kind.Kind)
	case !kind.Namespaced:
		return "", nil
	case o.kind.Namespaced && namespace != "" && namespace != o.key.Namespace:
		return "", badf("metadata.namespace: %q differs from %q, the namespace of its owner: omit the namespace",
			shorten(namespace), o.key.Namespace)
	case o.kind.Namespaced:
		return o.key.Namespace, nil
	case namespace == "":
		return "", badf("metadata.namespace is needed: %s is namespaced and its owner %s is not", kind.Kind, o.kind.Kind)
	}
	return namespace, nil
}
