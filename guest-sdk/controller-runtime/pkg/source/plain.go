// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// plainHandler returns h as a handler for objects of any type. It must receive
// only objects of the source's type.
func plainHandler[object client.Object](h handler.TypedEventHandler[object, reconcile.Request]) handler.EventHandler {
	if plain, ok := any(h).(handler.EventHandler); ok {
		return plain
	}
	if _, ok := any(h).(*handler.TypedEnqueueRequestForObject[object]); ok {
		return &handler.EnqueueRequestForObject{}
	}
	type to = queue.Of[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q to) { h.Create(ctx, create[object](e), q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q to) { h.Update(ctx, update[object](e), q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q to) { h.Delete(ctx, deleted[object](e), q) },
	}
}

// plainPredicate returns p as a predicate for objects of any type.
func plainPredicate[object client.Object](p predicate.TypedPredicate[object]) predicate.Predicate {
	if plain, ok := any(p).(predicate.Predicate); ok {
		return plain
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return p.Create(create[object](e)) },
		UpdateFunc: func(e event.UpdateEvent) bool { return p.Update(update[object](e)) },
		DeleteFunc: func(e event.DeleteEvent) bool { return p.Delete(deleted[object](e)) },
	}
}

func create[object client.Object](e event.CreateEvent) event.TypedCreateEvent[object] {
	return event.TypedCreateEvent[object]{Object: as[object](e.Object), IsInInitialList: e.IsInInitialList}
}

func update[object client.Object](e event.UpdateEvent) event.TypedUpdateEvent[object] {
	return event.TypedUpdateEvent[object]{ObjectOld: as[object](e.ObjectOld), ObjectNew: as[object](e.ObjectNew)}
}

func deleted[object client.Object](e event.DeleteEvent) event.TypedDeleteEvent[object] {
	return event.TypedDeleteEvent[object]{Object: as[object](e.Object), DeleteStateUnknown: e.DeleteStateUnknown}
}

func as[object client.Object](obj client.Object) object {
	typed, _ := obj.(object)
	return typed
}
