// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// And returns a predicate that accepts the events that all predicates accept.
func And[object any](predicates ...TypedPredicate[object]) TypedPredicate[object] {
	return combined[object]{predicates, true}
}

// Or returns a predicate that accepts the events that at least one predicate
// accepts.
func Or[object any](predicates ...TypedPredicate[object]) TypedPredicate[object] {
	return combined[object]{predicates, false}
}

// Not returns a predicate that accepts the events that the predicate does not
// accept.
func Not[object any](predicate TypedPredicate[object]) TypedPredicate[object] {
	return TypedFuncs[object]{
		CreateFunc:  func(e event.TypedCreateEvent[object]) bool { return !predicate.Create(e) },
		DeleteFunc:  func(e event.TypedDeleteEvent[object]) bool { return !predicate.Delete(e) },
		UpdateFunc:  func(e event.TypedUpdateEvent[object]) bool { return !predicate.Update(e) },
		GenericFunc: func(e event.TypedGenericEvent[object]) bool { return !predicate.Generic(e) },
	}
}

// combined is the result of And, if all is set, or of Or.
type combined[object any] struct {
	list []TypedPredicate[object]
	all  bool
}

// accepts asks the predicates until one of them decides.
func (c combined[object]) accepts(ask func(TypedPredicate[object]) bool) bool {
	for _, p := range c.list {
		if ask(p) != c.all {
			return !c.all
		}
	}
	return c.all
}

// Create implements TypedPredicate.
func (c combined[object]) Create(e event.TypedCreateEvent[object]) bool {
	return c.accepts(func(p TypedPredicate[object]) bool { return p.Create(e) })
}

// Delete implements TypedPredicate.
func (c combined[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	return c.accepts(func(p TypedPredicate[object]) bool { return p.Delete(e) })
}

// Update implements TypedPredicate.
func (c combined[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return c.accepts(func(p TypedPredicate[object]) bool { return p.Update(e) })
}

// Generic implements TypedPredicate.
func (c combined[object]) Generic(e event.TypedGenericEvent[object]) bool {
	return c.accepts(func(p TypedPredicate[object]) bool { return p.Generic(e) })
}

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
	case combined[client.Object]:
		return elementOf(p)
	}
	return "", false
}

// elementOf combines the elements of the predicates, if all have one.
func elementOf(c combined[client.Object]) (string, bool) {
	word, words := "any", []string(nil)
	if c.all {
		word = "all"
	}
	for _, p := range c.list {
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
	a, ok := p.(combined[client.Object])
	if !ok || !a.all {
		return []Predicate{p}
	}
	var list []Predicate
	for _, inner := range a.list {
		list = append(list, Conjuncts(inner)...)
	}
	return list
}
