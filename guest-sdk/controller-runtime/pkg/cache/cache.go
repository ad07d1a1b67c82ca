// SPDX-License-Identifier: Apache-2.0

// Package cache has the options of a manager's cache. In a module, the host
// watches objects and stores them.
package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/informers"
	"sigs.k8s.io/controller-runtime/pkg/internal/newcache"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// AllNamespaces is the key of Options.DefaultNamespaces for all namespaces
// without an entry of their own.
const AllNamespaces = metav1.NamespaceAll

// Options are the options of a cache. Namespaces and selectors restrict the
// watches; the other options have no effect.
type Options struct {
	HTTPClient                  *http.Client
	Scheme                      *runtime.Scheme
	Mapper                      meta.RESTMapper
	SyncPeriod                  *time.Duration
	ReaderFailOnMissingInformer bool
	// DefaultNamespaces are the namespaces to watch. If empty, all are watched.
	DefaultNamespaces map[string]Config
	// DefaultLabelSelector and DefaultFieldSelector restrict the objects.
	DefaultLabelSelector         labels.Selector
	DefaultFieldSelector         fields.Selector
	DefaultTransform             func(any) (any, error)
	DefaultUnsafeDisableDeepCopy *bool
	DefaultEnableWatchBookmarks  *bool
	DefaultWatchErrorHandler     any
	NewInformer                  any
	// ByObject overrides the options for some kinds.
	ByObject map[client.Object]ByObject

	// Namespaces is the name of DefaultNamespaces in version 0.15.
	Namespaces            []string
	UnsafeDisableDeepCopy *bool
}

// ByObject are the options of one kind.
type ByObject struct {
	Namespaces            map[string]Config
	Label                 labels.Selector
	Field                 fields.Selector
	Transform             func(any) (any, error)
	UnsafeDisableDeepCopy *bool
	EnableWatchBookmarks  *bool
	SyncPeriod            *time.Duration
}

// Config are the options of one namespace.
type Config struct {
	LabelSelector         labels.Selector
	FieldSelector         fields.Selector
	Transform             func(any) (any, error)
	UnsafeDisableDeepCopy *bool
	EnableWatchBookmarks  *bool
	SyncPeriod            *time.Duration
}

// Cache reads the objects that the host stores.
type Cache interface {
	client.Reader
	Informers
}

// Informers gives access to watches.
type Informers interface {
	// GetInformer returns the watch of obj's kind.
	GetInformer(ctx context.Context, obj client.Object, opts ...InformerGetOption) (Informer, error)
	// GetInformerForKind returns the watch of a kind.
	GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...InformerGetOption) (Informer, error)
	// RemoveInformer has no effect.
	RemoveInformer(ctx context.Context, obj client.Object) error
	// Start waits until ctx is done.
	Start(ctx context.Context) error
	// WaitForCacheSync returns true, because the host starts no run before the
	// caches have synced.
	WaitForCacheSync(ctx context.Context) bool
	client.FieldIndexer
}

// Informer represents a watch. Adding a handler returns an error, unless the
// build leaves out sources: use a controller's builder to declare watches.
type Informer interface {
	// AddEventHandler returns an error, or has no effect.
	AddEventHandler(handler informers.EventHandler) (informers.Registration, error)
	// AddEventHandlerWithResyncPeriod is like AddEventHandler.
	AddEventHandlerWithResyncPeriod(handler informers.EventHandler, resyncPeriod time.Duration) (informers.Registration, error)
	// AddEventHandlerWithOptions is like AddEventHandler.
	AddEventHandlerWithOptions(handler informers.EventHandler, options informers.HandlerOptions) (informers.Registration, error)
	// RemoveEventHandler has no effect.
	RemoveEventHandler(handle informers.Registration) error
	// AddIndexers returns an error: use IndexField of the cache to register
	// indexes.
	AddIndexers(indexers informers.Indexers) error
	// HasSynced returns true, because the host starts no run before the caches
	// have synced.
	HasSynced() bool
	// IsStopped returns false.
	IsStopped() bool
}

// InformerGetOptions have no effect.
type InformerGetOptions struct {
	BlockUntilSynced *bool
}

// InformerGetOption changes the options.
type InformerGetOption func(*InformerGetOptions)

// BlockUntilSynced sets InformerGetOptions.BlockUntilSynced.
func BlockUntilSynced(shouldBlock bool) InformerGetOption {
	return func(o *InformerGetOptions) { o.BlockUntilSynced = &shouldBlock }
}

// NewCacheFunc makes the cache of a manager, usually with New.
type NewCacheFunc func(config *rest.Config, opts Options) (Cache, error)

// New returns a cache with its own restrictions. If the NewCache function of a
// manager calls it, the result is the host's cache. Any other cache reads from
// the API server.
func New(config *rest.Config, opts Options) (Cache, error) {
	if newcache.Make == nil {
		return nil, errors.New("cache: the program has no manager; make one by ctrl.NewManager")
	}
	c, err := newcache.Make(config, opts)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return c.(Cache), nil //nolint:forcetypeassert // Make returns this type
}

// MultiNamespacedCacheBuilder makes a cache of several namespaces, in version
// 0.15.
func MultiNamespacedCacheBuilder(namespaces []string) NewCacheFunc {
	return func(config *rest.Config, opts Options) (Cache, error) {
		opts.Namespaces = namespaces
		return New(config, opts)
	}
}

// TransformStripManagedFields returns a function without an effect, because the
// host's copies have no managed fields.
func TransformStripManagedFields() func(any) (any, error) {
	return func(obj any) (any, error) { return obj, nil }
}

// ErrCacheNotStarted is the error of a cache outside of a run.
type ErrCacheNotStarted struct{}

// ErrResourceNotCached is the error of a cache that does not watch a kind. The
// cache of a module never returns it, because it reads other kinds from the API
// server.
type ErrResourceNotCached struct {
	GVK schema.GroupVersionKind
}

// Error implements error.
func (e ErrResourceNotCached) Error() string { return "cache: does not watch " + e.GVK.String() }

// Error implements error.
func (*ErrCacheNotStarted) Error() string {
	return "cache: not started: the cache can be read only while an object is reconciled"
}
