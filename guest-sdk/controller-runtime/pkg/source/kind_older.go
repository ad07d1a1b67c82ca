// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_018

package source

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kind returns the source of the events of a kind. Watch of a controller adds
// the handler.
func Kind(c cache.Cache, obj client.Object) SyncingSource {
	return TypedKind[client.Object, reconcile.Request](c, obj, nil)
}

// Handled returns a source of Kind with the handler and predicates given to
// Watch of a controller. It returns all other sources, and sources without a
// handler, unchanged.
func Handled[request comparable](src TypedSource[request], h handler.TypedEventHandler[client.Object, request], predicates ...predicate.Predicate) TypedSource[request] {
	k, ok := src.(*kind[client.Object, request])
	if !ok || h == nil {
		return src
	}
	return &kind[client.Object, request]{k.obj, h, predicates, k.wide}
}

// Channel is a source that a module does not support: a controller with it
// returns an error.
type Channel struct {
	Source         <-chan event.GenericEvent
	DestBufferSize int
}

// Start implements Source.
func (*Channel) Start(context.Context, queue.Of[reconcile.Request]) error {
	return impossible("source.Channel")
}

// String names the source.
func (*Channel) String() string { return "source.Channel" }

// Declared implements declare.Source.
func (*Channel) Declared() (declare.Watch, error) {
	return declare.Watch{}, impossible("source.Channel")
}
