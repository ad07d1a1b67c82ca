//go:build wasmctl_rest || !wasip1

// Package informers has the types of client-go's package cache that programs give to an
// informer: those of that package itself where the program has the REST client anyway,
// which package cache brings. wasmctl build sets the tag then.
package informers

import "k8s.io/client-go/tools/cache"

type (
	// EventHandler is client-go's.
	EventHandler = cache.ResourceEventHandler
	// Registration is client-go's.
	Registration = cache.ResourceEventHandlerRegistration
	// HandlerOptions are client-go's.
	HandlerOptions = cache.HandlerOptions
	// Indexers are client-go's.
	Indexers = cache.Indexers
)
