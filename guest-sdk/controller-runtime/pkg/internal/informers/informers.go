//go:build !wasmctl_rest && wasip1

// Package informers has the types of client-go's package cache that programs give to an
// informer, for a program without that package: it brings the REST client.
package informers

type (
	// EventHandler gets events.
	EventHandler interface {
		OnAdd(obj any, isInInitialList bool)
		OnUpdate(oldObj, newObj any)
		OnDelete(obj any)
	}
	// Registration is that of a handler.
	Registration interface{ HasSynced() bool }
	// HandlerOptions have no effect.
	HandlerOptions struct{}
	// Indexers have no effect.
	Indexers map[string]func(obj any) ([]string, error)
)
