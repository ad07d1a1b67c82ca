// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_018

package source

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kind returns the source of the events of a kind.
func Kind[object client.Object](c cache.Cache, obj object, h handler.TypedEventHandler[object, reconcile.Request], predicates ...predicate.TypedPredicate[object]) SyncingSource {
	return TypedKind[object, reconcile.Request](c, obj, h, predicates...)
}

// Channel is a source that a module does not support: a controller with it
// returns an error.
func Channel[object any](source <-chan event.TypedGenericEvent[object], h handler.TypedEventHandler[object, reconcile.Request], opts ...ChannelOpt[object, reconcile.Request]) Source {
	return TypedChannel[object, reconcile.Request](source, h, opts...)
}
