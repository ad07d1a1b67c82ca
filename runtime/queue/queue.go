// Package queue says which objects an event concerns, and why.
//
// A Mapper turns what a watch saw into requests to reconcile: Self, Owners,
// Label and Annotation are rules of the host; a Hook asks the guest. Package
// queue/predicate decides which events to ignore, package queue/trigger
// triggers reconciles without a watch. When a request runs is the scheduler's
// matter.
package queue

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Request asks for one object to be reconciled.
type Request struct {
	Ref    reflector.ObjectRef
	Reason abi.Reason
	// Low says that it is not urgent: it comes from the first list, not from a
	// change (rule 4).
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

// related appends a request for ref because of an event of another object,
// unless dst[from:] has one.
func related(dst []Request, from int, ref reflector.ObjectRef, resource string, ev reflector.Event) []Request {
	for i := from; i < len(dst); i++ {
		if dst[i].Ref == ref {
			return dst
		}
	}
	return append(dst, Request{
		Ref:    ref,
		Reason: abi.Reason{Type: abi.ReasonRelated, Resource: resource, Ref: ev.Ref()},
		Low:    ev.Type == reflector.Listed,
	})
}
