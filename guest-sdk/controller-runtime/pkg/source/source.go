// SPDX-License-Identifier: Apache-2.0

// Package source has the sources of events: kinds that the host watches.
package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/internal/hostcache"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Source is a source of events.
type Source = TypedSource[reconcile.Request]

// TypedSource is a Source for a type of request.
type TypedSource[request comparable] interface {
	// Start has no effect in a module, because the host watches.
	Start(ctx context.Context, q queue.Of[request]) error
}

// SyncingSource is a Source that can be waited for.
type SyncingSource = TypedSyncingSource[reconcile.Request]

// TypedSyncingSource is a SyncingSource for a type of request.
type TypedSyncingSource[request comparable] interface {
	TypedSource[request]
	// WaitForSync returns immediately, because the host starts no run before
	// the watch has synced.
	WaitForSync(ctx context.Context) error
}

// TypedKind is Kind for a type of request.
func TypedKind[object client.Object, request comparable](c cache.Cache, obj object, h handler.TypedEventHandler[object, request], predicates ...predicate.TypedPredicate[object]) TypedSyncingSource[request] {
	return &kind[object, request]{obj, h, predicates, hostcache.IsOwn(c)}
}

type kind[object client.Object, request comparable] struct {
	obj        object
	handler    handler.TypedEventHandler[object, request]
	predicates []predicate.TypedPredicate[object]
	wide       bool // a cache that is separate from the manager's watches it
}

// Start implements TypedSource.
func (*kind[object, request]) Start(context.Context, queue.Of[request]) error {
	return nil
}

// WaitForSync implements TypedSyncingSource.
func (*kind[object, request]) WaitForSync(context.Context) error { return nil }

// Declared implements declare.Source.
func (k *kind[object, request]) Declared() (declare.Watch, error) {
	if v := reflect.ValueOf(k.obj); !v.IsValid() || v.IsNil() {
		return declare.Watch{}, errors.New("source.Kind: the object is nil; pass an empty one of the kind")
	}
	typed, ok := any(k.handler).(handler.TypedEventHandler[object, reconcile.Request])
	if !ok {
		return declare.Watch{}, fmt.Errorf("source.Kind of %T: the handler enqueues %T: a module reconciles objects by their name, use reconcile.Request",
			k.obj, *new(request))
	}
	w := declare.Watch{Object: k.obj, Handler: plainHandler(typed), Wide: k.wide}
	for _, p := range k.predicates {
		w.Predicates = append(w.Predicates, plainPredicate(p))
	}
	return w, nil
}

// ChannelOpt is an option of Channel.
type ChannelOpt[object any, request comparable] func(*unavailable[request])

// WithPredicates is an option of Channel.
func WithPredicates[object any, request comparable](...predicate.TypedPredicate[object]) ChannelOpt[object, request] {
	return func(*unavailable[request]) {}
}

// WithBufferSize is an option of Channel.
func WithBufferSize[object any, request comparable](int) ChannelOpt[object, request] {
	return func(*unavailable[request]) {}
}

// TypedChannel is Channel for a type of request.
func TypedChannel[object any, request comparable](<-chan event.TypedGenericEvent[object], handler.TypedEventHandler[object, request], ...ChannelOpt[object, request]) TypedSource[request] {
	return &unavailable[request]{"source.Channel"}
}

// Informer is a TypedInformer for objects of any type.
type Informer = TypedInformer[client.Object, reconcile.Request]

// TypedInformer is a source that a module does not support: a controller with
// it returns an error.
type TypedInformer[object any, request comparable] struct {
	Informer   cache.Informer
	Handler    handler.TypedEventHandler[object, request]
	Predicates []predicate.TypedPredicate[object]
}

// Start implements TypedSource.
func (*TypedInformer[object, request]) Start(context.Context, queue.Of[request]) error {
	return impossible("source.Informer")
}

// String names the source.
func (*TypedInformer[object, request]) String() string { return "source.Informer" }

// Func is a source that a module does not support: a controller with it returns
// an error.
type Func = TypedFunc[reconcile.Request]

// TypedFunc is Func for a type of request.
type TypedFunc[request comparable] func(context.Context, queue.Of[request]) error

// Start implements TypedSource.
func (f TypedFunc[request]) Start(ctx context.Context, q queue.Of[request]) error {
	return f(ctx, q)
}

// String names the source.
func (TypedFunc[request]) String() string { return "source.Func" }

// unavailable is a source that a module does not support.
type unavailable[request comparable] struct{ name string }

// Start implements TypedSource.
func (u *unavailable[request]) Start(context.Context, queue.Of[request]) error {
	return impossible(u.name)
}

// Declared implements declare.Source.
func (u *unavailable[request]) Declared() (declare.Watch, error) {
	return declare.Watch{}, impossible(u.name)
}

func impossible(name string) error {
	return fmt.Errorf("%s: %s", name, program.NoEvents)
}
