// SPDX-License-Identifier: Apache-2.0

// Package predicate hides events of watched objects. The predicates of this
// package have names in a manifest, and the host evaluates them without a call
// of the module; see Element. For all other predicates it calls the module.
package predicate

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Predicate reports which events to handle.
type Predicate = TypedPredicate[client.Object]

// TypedPredicate is a Predicate for a type of object.
type TypedPredicate[object any] interface {
	// Create reports whether to handle a create event.
	Create(e event.TypedCreateEvent[object]) bool
	// Delete reports whether to handle a delete event.
	Delete(e event.TypedDeleteEvent[object]) bool
	// Update reports whether to handle an update event.
	Update(e event.TypedUpdateEvent[object]) bool
	// Generic reports whether to handle a generic event.
	Generic(e event.TypedGenericEvent[object]) bool
}

// Funcs is a Predicate that consists of functions. It accepts events for which
// the function is nil.
type Funcs = TypedFuncs[client.Object]

// TypedFuncs is Funcs for a type of object.
type TypedFuncs[object any] struct {
	CreateFunc  func(event.TypedCreateEvent[object]) bool
	DeleteFunc  func(event.TypedDeleteEvent[object]) bool
	UpdateFunc  func(event.TypedUpdateEvent[object]) bool
	GenericFunc func(event.TypedGenericEvent[object]) bool
}

// Create implements TypedPredicate.
func (f TypedFuncs[object]) Create(e event.TypedCreateEvent[object]) bool {
	return f.CreateFunc == nil || f.CreateFunc(e)
}

// Delete implements TypedPredicate.
func (f TypedFuncs[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	return f.DeleteFunc == nil || f.DeleteFunc(e)
}

// Update implements TypedPredicate.
func (f TypedFuncs[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return f.UpdateFunc == nil || f.UpdateFunc(e)
}

// Generic implements TypedPredicate.
func (f TypedFuncs[object]) Generic(e event.TypedGenericEvent[object]) bool {
	return f.GenericFunc == nil || f.GenericFunc(e)
}

// empty reports whether the predicate accepts every event.
func (f TypedFuncs[object]) empty() bool {
	return f.CreateFunc == nil && f.DeleteFunc == nil && f.UpdateFunc == nil && f.GenericFunc == nil
}

// NewPredicateFuncs returns a Predicate that calls filter with the object of
// each event; for an update, this is the new object.
func NewPredicateFuncs(filter func(object client.Object) bool) Funcs {
	return NewTypedPredicateFuncs(filter)
}

// NewTypedPredicateFuncs is NewPredicateFuncs for a type of object.
func NewTypedPredicateFuncs[object any](filter func(obj object) bool) TypedFuncs[object] {
	return TypedFuncs[object]{
		CreateFunc:  func(e event.TypedCreateEvent[object]) bool { return filter(e.Object) },
		DeleteFunc:  func(e event.TypedDeleteEvent[object]) bool { return filter(e.Object) },
		UpdateFunc:  func(e event.TypedUpdateEvent[object]) bool { return filter(e.ObjectNew) },
		GenericFunc: func(e event.TypedGenericEvent[object]) bool { return filter(e.Object) },
	}
}

// LabelSelectorPredicate returns a Predicate for objects that match the
// selector.
func LabelSelectorPredicate(s metav1.LabelSelector) (Predicate, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return Funcs{}, err
	}
	return NewPredicateFuncs(func(o client.Object) bool { return selector.Matches(labels.Set(o.GetLabels())) }), nil
}

// isNil reports whether the object of an event is nil, possibly as a nil
// pointer.
func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
