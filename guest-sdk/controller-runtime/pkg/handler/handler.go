// SPDX-License-Identifier: Apache-2.0

// Package handler selects the objects that an event of a watched object
// concerns. Handlers for owners are declared in the manifest; for other
// handlers the host calls the module.
package handler

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// EventHandler adds requests to a queue for events.
type EventHandler = TypedEventHandler[client.Object, reconcile.Request]

// TypedEventHandler is an EventHandler for a type of object and of request. The
// queue collects requests, and ignores delays and rate limits.
type TypedEventHandler[object any, request comparable] interface {
	// Create is called for an object that was created, or seen for the first time.
	Create(ctx context.Context, e event.TypedCreateEvent[object], q queue.Of[request])
	// Update is called for an object that has changed.
	Update(ctx context.Context, e event.TypedUpdateEvent[object], q queue.Of[request])
	// Delete is called for an object that is gone.
	Delete(ctx context.Context, e event.TypedDeleteEvent[object], q queue.Of[request])
	// Generic is called for events that do not come from a watch.
	Generic(ctx context.Context, e event.TypedGenericEvent[object], q queue.Of[request])
}

// Funcs is an EventHandler that consists of functions.
type Funcs = TypedFuncs[client.Object, reconcile.Request]

// TypedFuncs is Funcs for a type of object and of request.
type TypedFuncs[object any, request comparable] struct {
	CreateFunc  func(context.Context, event.TypedCreateEvent[object], queue.Of[request])
	UpdateFunc  func(context.Context, event.TypedUpdateEvent[object], queue.Of[request])
	DeleteFunc  func(context.Context, event.TypedDeleteEvent[object], queue.Of[request])
	GenericFunc func(context.Context, event.TypedGenericEvent[object], queue.Of[request])
}

// Create implements TypedEventHandler.
func (f TypedFuncs[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q queue.Of[request]) {
	if f.CreateFunc != nil {
		f.CreateFunc(ctx, e, q)
	}
}

// Update implements TypedEventHandler.
func (f TypedFuncs[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q queue.Of[request]) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(ctx, e, q)
	}
}

// Delete implements TypedEventHandler.
func (f TypedFuncs[object, request]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q queue.Of[request]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(ctx, e, q)
	}
}

// Generic implements TypedEventHandler.
func (f TypedFuncs[object, request]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q queue.Of[request]) {
	if f.GenericFunc != nil {
		f.GenericFunc(ctx, e, q)
	}
}

// LowPriority is the priority of requests that are not urgent. It has no
// effect, because the host has its own priorities.
const LowPriority = -100

// WithLowPriorityWhenUnchanged returns u unchanged, because the host has its
// own priorities.
func WithLowPriorityWhenUnchanged[object client.Object, request comparable](u TypedEventHandler[object, request]) TypedEventHandler[object, request] {
	return u
}

// keys enqueues the requests that a function returns for the objects of an
// event, without duplicates. The handlers of this package share it.
type keys[object any, request comparable] func(ctx context.Context, obj object) []request

func (k keys[object, request]) add(ctx context.Context, q queue.Of[request], objects ...object) {
	seen := map[request]bool{}
	for _, obj := range objects {
		if isNil(obj) {
			continue
		}
		for _, r := range k(ctx, obj) {
			if !seen[r] {
				seen[r] = true
				q.Add(r)
			}
		}
	}
}

// Create implements TypedEventHandler.
func (k keys[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q queue.Of[request]) {
	k.add(ctx, q, e.Object)
}

// Update implements TypedEventHandler.
func (k keys[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q queue.Of[request]) {
	k.add(ctx, q, e.ObjectOld, e.ObjectNew)
}

// Delete implements TypedEventHandler.
func (k keys[object, request]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q queue.Of[request]) {
	k.add(ctx, q, e.Object)
}

// Generic implements TypedEventHandler.
func (k keys[object, request]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q queue.Of[request]) {
	k.add(ctx, q, e.Object)
}

// isNil reports whether the object of an event is nil, possibly as a nil
// pointer.
func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
