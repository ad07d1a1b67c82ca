// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// MaxTargets is how many objects one annotation may name; the others are rejected.
const MaxTargets = 256

// Target interprets the value of a label or an annotation as the name of an object of the reconciled kind.
type Target struct {
	// Resource is the watched resource, such as "secrets", for the reason.
	Resource string
	// ClusterScoped means that the reconciled kind has no namespaces.
	ClusterScoped bool
	// OnInvalid, if not nil, is called for a value that is not a valid name; object has the value, and key is the label's or annotation's.
	// It is called again at each event of the object, from the goroutine of the watch, and must be quick.
	OnInvalid func(object reflector.ObjectRef, key, value string, err error)
}

// Label maps an object to the one that is named by one of its labels. A label value cannot contain a slash: the named object is in the same
// namespace as the labeled one, or in none if its kind is cluster-scoped.
type Label struct {
	Key string
	Target
}

// Map is a Mapper. It requests the objects that the label named before and after a change, each once. An object without the label causes no
// request.
func (l Label) Map(dst []Request, ev reflector.Event) []Request {
	from := len(dst)
	var old string
	if ev.Old != nil {
		old = ev.Old.Labels().Get(l.Key)
		dst = l.appendTarget(dst, from, ev, l.Key, old)
	}
	if ev.New != nil {
		if value := ev.New.Labels().Get(l.Key); value != old {
			dst = l.appendTarget(dst, from, ev, l.Key, value)
		}
	}
	return dst
}

// Annotation maps an object to those that are named by one of its annotations: "name", in the object's own namespace, or "namespace/name";
// several are separated by commas.
type Annotation struct {
	Key string
	Target
}

// Map is a Mapper. It requests the objects that the annotation named before and after a change, each once. An object without the annotation
// causes no request.
func (a Annotation) Map(dst []Request, ev reflector.Event) []Request {
	from := len(dst)
	var old string
	if ev.Old != nil {
		old, _ = ev.Old.Annotation(a.Key)
		dst = a.appendTargets(dst, from, ev, old)
	}
	if ev.New != nil {
		if value, _ := ev.New.Annotation(a.Key); value != old {
			dst = a.appendTargets(dst, from, ev, value)
		}
	}
	return dst
}

func (a Annotation) appendTargets(dst []Request, from int, ev reflector.Event, value string) []Request {
	n := 0
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if n++; n > MaxTargets {
			a.invalid(ev, a.Key, value, fmt.Errorf("names more than %d objects", MaxTargets))
			break
		}
		dst = a.appendTarget(dst, from, ev, a.Key, part)
	}
	return dst
}

// appendTarget appends the object that value names, if value is valid and the object is not in dst[from:].
func (t Target) appendTarget(dst []Request, from int, ev reflector.Event, key, value string) []Request {
	if value == "" {
		return dst
	}
	ref, err := ParseRef(value, Scope{ClusterScoped: t.ClusterScoped, Namespace: ev.Ref().Namespace})
	if err != nil {
		t.invalid(ev, key, value, err)
		return dst
	}
	return related(dst, from, ref, t.Resource, ev)
}

func (t Target) invalid(ev reflector.Event, key, value string, err error) {
	if t.OnInvalid != nil {
		t.OnInvalid(ev.Ref(), key, value, err)
	}
}

// errLabelScope means that a label cannot name an object in another scope.
var errLabelScope = errors.New("a label value cannot contain a namespace, and the watched kind is cluster-scoped: use annotation:KEY with namespace/name")
