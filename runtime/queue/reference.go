package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// MaxTargets is how many objects one annotation may name; the rest is refused.
const MaxTargets = 256

// Target says what the value of a label or an annotation names: an object of
// the kind that is reconciled.
type Target struct {
	// Resource is the watched resource, "secrets", for the reason.
	Resource string
	// ClusterScoped says that the reconciled kind has no namespaces.
	ClusterScoped bool
	// OnInvalid, if not nil, is notified of a value that names no object: object
	// has it, key is the label's or annotation's. It is called again at each
	// event of the object, by the goroutine of the watch, and must be quick.
	OnInvalid func(object reflector.ObjectRef, key, value string, err error)
}

// Label maps an object to the one that a label of it names. A label's value has
// no room for a slash: the object is in the namespace of the one that has the
// label, or in none where its kind is cluster-scoped.
type Label struct {
	Key string
	Target
}

// Map is a Mapper. It requests what the label named before and after a change;
// each once. An object without the label requests nothing.
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

// Annotation maps an object to those that an annotation of it names: "name",
// in the object's own namespace, or "namespace/name"; several with commas
// between them.
type Annotation struct {
	Key string
	Target
}

// Map is a Mapper. It requests what the annotation named before and after a
// change; each once. An object without the annotation requests nothing.
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

// appendTarget appends the object that value names, if it is a name and does
// not stand in dst[from:].
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

// errLabelScope says that a label cannot name an object in another scope.
var errLabelScope = errors.New("a label value cannot contain a namespace, and the watched kind is cluster-scoped: use annotation:KEY with namespace/name")
