// SPDX-License-Identifier: Apache-2.0

// Package queue determines which objects an event affects, and why.
//
// A Mapper turns a watch event into reconcile requests: Self, Owners, Label and Annotation are rules of the host; a Hook asks the guest.
// Package queue/predicate decides which events to ignore, and package queue/trigger causes reconciles without a watch. The scheduler
// decides when a request runs.
package queue

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Request asks for one object to be reconciled.
type Request struct {
	Ref    reflector.ObjectRef
	Reason abi.Reason
	// Low means that the request is not urgent: it comes from the first list, not from a change (rule 4).
	Low bool
}

// Mapper appends the requests that an event causes to dst and returns it. It allocates only if dst must grow, and is safe for concurrent
// use.
type Mapper func(dst []Request, ev reflector.Event) []Request

// Self requests the object of the event itself. A deletion is a request too, with reason ObjectDeleted: whether the module is called for it
// is decided when it runs (rule 20).
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

// related appends a request for ref because of an event of another object, unless dst[from:] already contains one.
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
