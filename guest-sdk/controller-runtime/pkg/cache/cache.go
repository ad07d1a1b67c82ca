// Package cache has the options of a manager's cache. In a module the host
// watches, and keeps the objects.
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

// AllNamespaces is the key of Options.DefaultNamespaces for those without one of
// their own.
const AllNamespaces = metav1.NamespaceAll

// Options of a cache. Namespaces and selectors bound what is watched; the others
// have no effect.
type Options struct {
	HTTPClient                  *http.Client
	Scheme                      *runtime.Scheme
	Mapper                      meta.RESTMapper
	SyncPeriod                  *time.Duration
	ReaderFailOnMissingInformer bool
	// DefaultNamespaces are the namespaces that are watched; none is all.
	DefaultNamespaces map[string]Config
	// DefaultLabelSelector and DefaultFieldSelector bound the objects.
	DefaultLabelSelector         labels.Selector
	DefaultFieldSelector         fields.Selector
	DefaultTransform             func(any) (any, error)
	DefaultUnsafeDisableDeepCopy *bool
	DefaultEnableWatchBookmarks  *bool
	DefaultWatchErrorHandler     any
	NewInformer                  any
	// ByObject says other things for some kinds.
	ByObject map[client.Object]ByObject

	// Namespaces are DefaultNamespaces in version 0.15.
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

// Cache reads the objects that the host keeps.
type Cache interface {
	client.Reader
	Informers
}

// Informers stands for what watches.
type Informers interface {
	// GetInformer returns the watch of obj's kind.
	GetInformer(ctx context.Context, obj client.Object, opts ...InformerGetOption) (Informer, error)
	// GetInformerForKind returns the watch of a kind.
	GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...InformerGetOption) (Informer, error)
	// RemoveInformer has no effect.
	RemoveInformer(ctx context.Context, obj client.Object) error
	// Start waits until ctx is done.
	Start(ctx context.Context) error
	// WaitForCacheSync returns true: the host runs nothing before that.
	WaitForCacheSync(ctx context.Context) bool
	client.FieldIndexer
}

// Informer stands for a watch. A handler is an error when it is added, unless the build
// leaves out sources: a controller's builder declares what to watch.
type Informer interface {
	// AddEventHandler is an error, or has no effect.
	AddEventHandler(handler informers.EventHandler) (informers.Registration, error)
	// AddEventHandlerWithResyncPeriod is as AddEventHandler.
	AddEventHandlerWithResyncPeriod(handler informers.EventHandler, resyncPeriod time.Duration) (informers.Registration, error)
	// AddEventHandlerWithOptions is as AddEventHandler.
	AddEventHandlerWithOptions(handler informers.EventHandler, options informers.HandlerOptions) (informers.Registration, error)
	// RemoveEventHandler has no effect.
	RemoveEventHandler(handle informers.Registration) error
	// AddIndexers is an error: IndexField of the cache registers indexes.
	AddIndexers(indexers informers.Indexers) error
	// HasSynced returns true: the host runs nothing before that.
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

// NewCacheFunc makes the cache of a manager, by New.
type NewCacheFunc func(config *rest.Config, opts Options) (Cache, error)

// New returns a cache with bounds of its own. As that of a manager, by its NewCache, it is
// the host's. Beside that of a manager, it reads from the API server.
func New(config *rest.Config, opts Options) (Cache, error) {
	if newcache.Make == nil {
		return nil, errors.New("cache: the program has no manager; make one by ctrl.NewManager")
	}
	c, err := newcache.Make(config, opts)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return c.(Cache), nil //nolint:forcetypeassert // as Make says
}

// MultiNamespacedCacheBuilder makes a cache of some namespaces, in version 0.15.
func MultiNamespacedCacheBuilder(namespaces []string) NewCacheFunc {
	return func(config *rest.Config, opts Options) (Cache, error) {
		opts.Namespaces = namespaces
		return New(config, opts)
	}
}

// TransformStripManagedFields returns a function that changes nothing: the
// host's copies have no managed fields.
func TransformStripManagedFields() func(any) (any, error) {
	return func(obj any) (any, error) { return obj, nil }
}

// ErrCacheNotStarted is the error of a cache outside of a run.
type ErrCacheNotStarted struct{}

// ErrResourceNotCached is the error of a cache that does not watch a kind. A module's
// reads those from the API server.
type ErrResourceNotCached struct {
	GVK schema.GroupVersionKind
}

// Error implements error.
func (e ErrResourceNotCached) Error() string { return "cache: does not watch " + e.GVK.String() }

// Error implements error.
func (*ErrCacheNotStarted) Error() string {
	return "cache: not started: the cache can be read only while an object is reconciled"
}
