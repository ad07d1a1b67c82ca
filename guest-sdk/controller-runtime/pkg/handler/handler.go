// Package handler says which objects an event of a watched object concerns. In a
// manifest, owners are declared; for other handlers the host calls the module.
package handler

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// EventHandler adds requests to a queue because of events.
type EventHandler = TypedEventHandler[client.Object, reconcile.Request]

// TypedEventHandler is an EventHandler of a type of object and of request. The
// queue collects requests; delays and rates of it do not count.
type TypedEventHandler[object any, request comparable] interface {
	// Create is called for an object that was created, or seen for the first time.
	Create(ctx context.Context, e event.TypedCreateEvent[object], q queue.Of[request])
	// Update is called for an object that has changed.
	Update(ctx context.Context, e event.TypedUpdateEvent[object], q queue.Of[request])
	// Delete is called for an object that is gone.
	Delete(ctx context.Context, e event.TypedDeleteEvent[object], q queue.Of[request])
	// Generic is called for events that come from elsewhere.
	Generic(ctx context.Context, e event.TypedGenericEvent[object], q queue.Of[request])
}

// Funcs is an EventHandler of functions.
type Funcs = TypedFuncs[client.Object, reconcile.Request]

// TypedFuncs is Funcs of a type of object and of request.
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

// LowPriority is the priority of requests that nobody waits for. It has no
// effect: the host has priorities of its own.
const LowPriority = -100

// WithLowPriorityWhenUnchanged returns u: the host has priorities of its own.
func WithLowPriorityWhenUnchanged[object client.Object, request comparable](u TypedEventHandler[object, request]) TypedEventHandler[object, request] {
	return u
}

// keys adds the requests that a function finds for the objects of an event, each
// once. It is the common part of the handlers of this package.
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

// isNil reports whether there is nothing behind an object of an event.
func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
