// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// EnqueueRequestForObject is a handler that enqueues the object of the event
// itself.
type EnqueueRequestForObject = TypedEnqueueRequestForObject[client.Object]

// TypedEnqueueRequestForObject is EnqueueRequestForObject for a type of object.
type TypedEnqueueRequestForObject[object client.Object] struct{}

func (*TypedEnqueueRequestForObject[object]) handler() keys[object, reconcile.Request] {
	return func(_ context.Context, obj object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}
}

// Create implements TypedEventHandler.
func (h *TypedEnqueueRequestForObject[object]) Create(ctx context.Context, e event.TypedCreateEvent[object], q queue.Of[reconcile.Request]) {
	h.handler().Create(ctx, e, q)
}

// Update implements TypedEventHandler. It enqueues the new object, if there is
// one.
func (h *TypedEnqueueRequestForObject[object]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q queue.Of[reconcile.Request]) {
	obj := e.ObjectNew
	if isNil(obj) {
		obj = e.ObjectOld
	}
	h.handler().add(ctx, q, obj)
}

// Delete implements TypedEventHandler.
func (h *TypedEnqueueRequestForObject[object]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q queue.Of[reconcile.Request]) {
	h.handler().Delete(ctx, e, q)
}

// Generic implements TypedEventHandler.
func (h *TypedEnqueueRequestForObject[object]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q queue.Of[reconcile.Request]) {
	h.handler().Generic(ctx, e, q)
}

// MapFunc returns the requests that an object causes.
type MapFunc = TypedMapFunc[client.Object, reconcile.Request]

// TypedMapFunc is a MapFunc for a type of object and of request.
type TypedMapFunc[object any, request comparable] func(ctx context.Context, obj object) []request

// EnqueueRequestsFromMapFunc returns a handler that enqueues the results of fn.
// For an update, it calls fn for the old and for the new object. In fn, the
// client can read only the host's cache.
func EnqueueRequestsFromMapFunc(fn MapFunc) EventHandler {
	return TypedEnqueueRequestsFromMapFunc(fn)
}

// TypedEnqueueRequestsFromMapFunc is EnqueueRequestsFromMapFunc for a type of
// object and of request.
func TypedEnqueueRequestsFromMapFunc[object any, request comparable](fn TypedMapFunc[object, request]) TypedEventHandler[object, request] {
	return keys[object, request](fn)
}

// OwnerOption is an option of EnqueueRequestForOwner.
type OwnerOption func(*ownerOptions)

type ownerOptions struct{ controller bool }

// OnlyControllerOwner skips owners that do not control the object.
func OnlyControllerOwner() OwnerOption { return func(o *ownerOptions) { o.controller = true } }

// EnqueueRequestForOwner returns a handler that enqueues the owners of an
// object that have the type ownerType. It panics if the scheme does not know
// ownerType.
func EnqueueRequestForOwner(scheme *runtime.Scheme, mapper meta.RESTMapper, ownerType client.Object, opts ...OwnerOption) EventHandler {
	return TypedEnqueueRequestForOwner[client.Object](scheme, mapper, ownerType, opts...)
}

// TypedEnqueueRequestForOwner is EnqueueRequestForOwner for a type of object.
func TypedEnqueueRequestForOwner[object client.Object](scheme *runtime.Scheme, mapper meta.RESTMapper, ownerType client.Object, opts ...OwnerOption) TypedEventHandler[object, reconcile.Request] {
	gvk, err := apiutil.GVKForObject(ownerType, scheme)
	if err != nil {
		panic(fmt.Sprintf("handler.EnqueueRequestForOwner: %v", err))
	}
	var o ownerOptions
	for _, opt := range opts {
		opt(&o)
	}
	h := &owners[object]{gvk: gvk, controller: o.controller}
	h.keys = func(_ context.Context, obj object) []reconcile.Request { return h.of(obj, mapper) }
	return h
}

// owners is the handler that enqueues owners.
type owners[object client.Object] struct {
	keys[object, reconcile.Request]
	gvk        schema.GroupVersionKind
	controller bool
}

// of returns the owners of obj. It compares group and kind, but not the
// version.
func (h *owners[object]) of(obj object, mapper meta.RESTMapper) []reconcile.Request {
	refs := obj.GetOwnerReferences()
	if h.controller {
		refs = nil
		if ref := metav1.GetControllerOf(obj); ref != nil {
			refs = []metav1.OwnerReference{*ref}
		}
	}
	var list []reconcile.Request
	for _, ref := range refs {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || ref.Kind != h.gvk.Kind || gv.Group != h.gvk.Group {
			continue
		}
		name := types.NamespacedName{Name: ref.Name}
		if namespaced, err := apiutil.IsGVKNamespaced(gv.WithKind(ref.Kind), mapper); err != nil || namespaced {
			name.Namespace = obj.GetNamespace()
		}
		list = append(list, reconcile.Request{NamespacedName: name})
	}
	return list
}

// Owner returns the owner kind that h enqueues, and whether it enqueues only
// the controlling owner. It returns false if h is another handler.
func Owner(h EventHandler) (gvk schema.GroupVersionKind, controller, ok bool) {
	o, ok := h.(*owners[client.Object])
	if !ok {
		return gvk, false, false
	}
	return o.gvk, o.controller, true
}
