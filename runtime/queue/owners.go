// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/wasmctl/wasmctl/runtime/reflector"

// Owners maps an object to its owners of one group and kind (rule 24). By default it requests every such owner, as kube-rs does;
// controller-runtime's default is ControllerOnly.
type Owners struct {
	// Group and Kind are those of the owner. The version in an owner reference does not matter: an object keeps the one it was written
	// with.
	Group, Kind string
	// Resource is the watched resource, such as "deployments.apps", for the reason.
	Resource string
	// ControllerOnly ignores owners that are not the managing controller of the object.
	ControllerOnly bool
	// ClusterScoped means that the owner has no namespace. Otherwise, the owner is in the object's own namespace, because Kubernetes allows
	// no other; an object without a namespace then has no such owner, whatever its references contain.
	ClusterScoped bool
	// Waiting returns the objects that wait for a child to be deleted, because they want to create it. It may be nil.
	Waiting func(child reflector.ObjectRef) []reflector.ObjectRef
}

// Map is a Mapper. It requests the owners before and after a change, each once, so that an owner that lost the object is notified, and after
// a deletion the objects that wait for it.
func (o Owners) Map(dst []Request, ev reflector.Event) []Request {
	from := len(dst)
	if ev.Old != nil {
		dst = o.appendOwners(dst, from, ev.Old, ev)
	}
	if ev.New != nil {
		dst = o.appendOwners(dst, from, ev.New, ev)
	}
	if o.Waiting != nil && ev.Type == reflector.Deleted {
		for _, ref := range o.Waiting(ev.Ref()) {
			dst = related(dst, from, ref, o.Resource, ev)
		}
	}
	return dst
}

// appendOwners appends the owners of obj that are not in dst[from:].
func (o Owners) appendOwners(dst []Request, from int, obj *reflector.Object, ev reflector.Event) []Request {
	namespace := obj.Ref().Namespace
	if namespace == "" && !o.ClusterScoped {
		return dst
	}
	for owner := range obj.Owners() {
		if owner.Kind != o.Kind || owner.Group != o.Group || o.ControllerOnly && !owner.Controller {
			continue
		}
		ref := reflector.ObjectRef{Name: owner.Name}
		if !o.ClusterScoped {
			ref.Namespace = namespace
		}
		dst = related(dst, from, ref, o.Resource, ev)
	}
	return dst
}
