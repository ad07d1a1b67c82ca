// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_rest || !wasip1

// Package informers has the types of client-go's package cache that programs
// pass to an informer. With this build tag they are aliases of that package.
// wasmctl build sets the tag if the program includes the REST client anyway, on
// which that package depends.
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
