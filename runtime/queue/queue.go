// Package queue says which objects an event concerns: a Mapper turns what a
// watch saw into requests to reconcile. When they run is the scheduler's
// matter.
package queue

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Request asks for one object to be reconciled.
type Request struct {
	Ref    reflector.ObjectRef
	Reason abi.Reason
	// Low says that nobody waits for it: it comes from the first list, not from
	// a change (rule 4).
	Low bool
}

// Mapper appends the requests that an event causes to dst and returns it. It
// allocates only where dst must grow, and is safe for concurrent use.
type Mapper func(dst []Request, ev reflector.Event) []Request

// Self requests the object of the event itself. A deletion is a request too,
// with reason ObjectDeleted: whether a module is called for it is decided when
// it runs (rule 20).
func Self(dst []Request, ev reflector.Event) []Request {
	var reason abi.ReasonType
	switch ev.Type {
	case reflector.Listed, reflector.Relisted:
		reason = abi.ReasonListed
	case reflector.Applied:
		reason = abi.ReasonObjectUpdated
	case reflector.Deleted:
		reason = abi.ReasonObjectDeleted
	}
	return append(dst, Request{
		Ref:    ev.Ref(),
		Reason: abi.Reason{Type: reason},
		Low:    ev.Type == reflector.Listed,
	})
}

// Owners maps an object to those of its owners that are of one group and kind
// (rule 24). The zero values of the options request every such owner, as kube-rs
// does; controller-runtime's default is ControllerOnly.
type Owners struct {
	// Group and Kind are those of the owner. The version in an owner reference
	// does not matter: an object keeps the one it was written with.
	Group, Kind string
	// Resource is the watched resource, "deployments.apps", for the reason.
	Resource string
	// ControllerOnly passes over owners that do not manage the object.
	ControllerOnly bool
	// ClusterScoped says that the owner has no namespace. Otherwise it is in the
	// object's own: Kubernetes allows no other.
	ClusterScoped bool
}

// Map is a Mapper. It requests the owners before and after a change, so that
// one that lost the object learns of it; each once.
func (o Owners) Map(dst []Request, ev reflector.Event) []Request {
	from := len(dst)
	if ev.Old != nil {
		dst = o.appendOwners(dst, from, ev.Old, ev)
	}
	if ev.New != nil {
		dst = o.appendOwners(dst, from, ev.New, ev)
	}
	return dst
}

// appendOwners appends the owners of obj that do not stand in dst[from:].
func (o Owners) appendOwners(dst []Request, from int, obj *reflector.Object, ev reflector.Event) []Request {
	for owner := range obj.Owners() {
		if owner.Kind != o.Kind || owner.Group != o.Group || o.ControllerOnly && !owner.Controller {
			continue
		}
		ref := reflector.ObjectRef{Name: owner.Name}
		if !o.ClusterScoped {
			ref.Namespace = obj.Ref().Namespace
		}
		if slices.ContainsFunc(dst[from:], func(r Request) bool { return r.Ref == ref }) {
			continue
		}
		dst = append(dst, Request{
			Ref:    ref,
			Reason: abi.Reason{Type: abi.ReasonRelated, Resource: o.Resource, Ref: ev.Ref()},
			Low:    ev.Type == reflector.Listed,
		})
	}
	return dst
}
