// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_rest && wasip1

// Package informers has the types of client-go's package cache that programs
// pass to an informer, for programs without that package, which depends on the
// REST client.
package informers

type (
	// EventHandler receives events.
	EventHandler interface {
		OnAdd(obj any, isInInitialList bool)
		OnUpdate(oldObj, newObj any)
		OnDelete(obj any)
	}
	// Registration is the registration of a handler.
	Registration interface{ HasSynced() bool }
	// HandlerOptions have no effect.
	HandlerOptions struct{}
	// Indexers have no effect.
	Indexers map[string]func(obj any) ([]string, error)
)
