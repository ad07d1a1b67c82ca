// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// And returns a predicate that accepts the events that all predicates accept.
func And[object any](predicates ...TypedPredicate[object]) TypedPredicate[object] {
	return and[object]{predicates}
}

// Or returns a predicate that accepts the events that at least one predicate
// accepts.
func Or[object any](predicates ...TypedPredicate[object]) TypedPredicate[object] {
	return or[object]{predicates}
}

// Not returns a predicate that accepts the events that the predicate does not
// accept.
func Not[object any](predicate TypedPredicate[object]) TypedPredicate[object] {
	return not[object]{predicate}
}

type predicates[object any] []TypedPredicate[object]

// all reports whether ask returns true for all predicates. It stops at the
// first false.
func (list predicates[object]) all(ask func(TypedPredicate[object]) bool) bool {
	for _, p := range list {
		if !ask(p) {
			return false
		}
	}
	return true
}

// one reports whether ask returns true for a predicate. It stops at the first
// true.
func (list predicates[object]) one(ask func(TypedPredicate[object]) bool) bool {
	return !list.all(func(p TypedPredicate[object]) bool { return !ask(p) })
}

type and[object any] struct{ list predicates[object] }

// Create implements TypedPredicate.
func (a and[object]) Create(e event.TypedCreateEvent[object]) bool {
	return a.list.all(func(p TypedPredicate[object]) bool { return p.Create(e) })
}

// Delete implements TypedPredicate.
func (a and[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	return a.list.all(func(p TypedPredicate[object]) bool { return p.Delete(e) })
}

// Update implements TypedPredicate.
func (a and[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return a.list.all(func(p TypedPredicate[object]) bool { return p.Update(e) })
}

// Generic implements TypedPredicate.
func (a and[object]) Generic(e event.TypedGenericEvent[object]) bool {
	return a.list.all(func(p TypedPredicate[object]) bool { return p.Generic(e) })
}

type or[object any] struct{ list predicates[object] }

// Create implements TypedPredicate.
func (o or[object]) Create(e event.TypedCreateEvent[object]) bool {
	return o.list.one(func(p TypedPredicate[object]) bool { return p.Create(e) })
}

// Delete implements TypedPredicate.
func (o or[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	return o.list.one(func(p TypedPredicate[object]) bool { return p.Delete(e) })
}

// Update implements TypedPredicate.
func (o or[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return o.list.one(func(p TypedPredicate[object]) bool { return p.Update(e) })
}

// Generic implements TypedPredicate.
func (o or[object]) Generic(e event.TypedGenericEvent[object]) bool {
	return o.list.one(func(p TypedPredicate[object]) bool { return p.Generic(e) })
}

type not[object any] struct{ p TypedPredicate[object] }

// Create implements TypedPredicate.
func (n not[object]) Create(e event.TypedCreateEvent[object]) bool { return !n.p.Create(e) }

// Delete implements TypedPredicate.
func (n not[object]) Delete(e event.TypedDeleteEvent[object]) bool { return !n.p.Delete(e) }

// Update implements TypedPredicate.
func (n not[object]) Update(e event.TypedUpdateEvent[object]) bool { return !n.p.Update(e) }

// Generic implements TypedPredicate.
func (n not[object]) Generic(e event.TypedGenericEvent[object]) bool { return !n.p.Generic(e) }

// Element returns the element of a manifest's predicates that accepts the same
// events as p, or false if there is none. Only the types of this package have
// one, because a type that embeds one of them may behave differently.
func Element(p Predicate) (string, bool) {
	switch p := p.(type) {
	case GenerationChangedPredicate:
		return "generation", p.empty()
	case *GenerationChangedPredicate:
		return "generation", p.empty()
	case ResourceVersionChangedPredicate:
		return "resourceVersion", p.empty()
	case *ResourceVersionChangedPredicate:
		return "resourceVersion", p.empty()
	case AnnotationChangedPredicate:
		return "annotations", p.empty()
	case *AnnotationChangedPredicate:
		return "annotations", p.empty()
	case LabelChangedPredicate:
		return "labels", p.empty()
	case *LabelChangedPredicate:
		return "labels", p.empty()
	case and[client.Object]:
		return elements("all", p.list)
	case or[client.Object]:
		return elements("any", p.list)
	}
	return "", false
}

// elements combines the elements of a list, if all predicates have one.
func elements(word string, list predicates[client.Object]) (string, bool) {
	var words []string
	for _, p := range list {
		w, ok := Element(p)
		if !ok {
			return "", false
		}
		words = append(words, w)
	}
	return word + "(" + strings.Join(words, ", ") + ")", len(words) > 0
}

// Conjuncts returns the predicates that must all accept an event for p to
// accept it.
func Conjuncts(p Predicate) []Predicate {
	a, ok := p.(and[client.Object])
	if !ok {
		return []Predicate{p}
	}
	var list []Predicate
	for _, inner := range a.list {
		list = append(list, Conjuncts(inner)...)
	}
	return list
}
