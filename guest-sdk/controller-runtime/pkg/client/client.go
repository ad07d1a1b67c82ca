// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/defaultscheme"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
)

// WarningHandlerOptions select the warnings of the API server to log, before
// version 0.19.
type WarningHandlerOptions struct {
	SuppressWarnings   bool
	AllowDuplicateLogs bool
}

// Options are the options of New.
type Options struct {
	// HTTPClient has no effect, because the host connects to the API server.
	HTTPClient *http.Client
	// Scheme maps kinds to Go types.
	Scheme *runtime.Scheme
	// Mapper maps kinds to resources.
	Mapper meta.RESTMapper
	// Cache selects the reads that go to a cache. If nil, all reads go to the
	// API server.
	Cache *CacheOptions
	// DryRun makes the API server store no writes.
	DryRun *bool
	// WarningHandler has no effect, because the host logs warnings.
	WarningHandler WarningHandlerOptions
	// Log has no effect.
	Log logr.Logger
	// FieldOwner is the default field manager of writes.
	FieldOwner string
	// FieldValidation is the default field validation of writes.
	FieldValidation string
}

// CacheOptions select the reads that go to a cache.
type CacheOptions struct {
	// Reader is the cache.
	Reader Reader
	// DisableFor lists kinds that are read from the API server.
	DisableFor []Object
	// EnableReadYourWritesConsistency has no effect: the host's cache includes
	// the writes of a run when the next run of the object starts.
	EnableReadYourWritesConsistency *bool
	// Unstructured makes reads of Unstructured objects go to the cache, too.
	Unstructured bool
}

// NewClientFunc makes a client.
type NewClientFunc func(config *rest.Config, options Options) (Client, error)

// New returns a client whose calls go to the host, during a call of Reconcile.
// Before the manager starts, the cluster seems to have no objects.
func New(config *rest.Config, options Options) (Client, error) {
	if config == nil {
		return nil, errors.New("client: the config is nil; use the one of ctrl.GetConfigOrDie")
	}
	if err := rest.Check(config); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if options.Scheme == nil {
		if options.Scheme = defaultscheme.Get(); options.Scheme == nil {
			return nil, fmt.Errorf("client: %w", defaultscheme.ErrNone)
		}
	}
	if options.Mapper == nil {
		options.Mapper = kinds.NewMapper(options.Scheme)
	}
	h := &host{call: rest.ClientOf(config), scheme: options.Scheme, mapper: options.Mapper, uncached: map[schema.GroupVersionKind]bool{}}
	if err := h.useCache(options.Cache); err != nil {
		return nil, err
	}
	var c Client = h
	if options.DryRun != nil && *options.DryRun {
		c = NewDryRunClient(c)
	}
	if options.FieldOwner != "" {
		c = WithFieldOwner(c, options.FieldOwner)
	}
	if options.FieldValidation != "" {
		c = WithFieldValidation(c, FieldValidation(options.FieldValidation))
	}
	return c, nil
}

// NewWithWatch returns a client as New does. Its Watch returns an error,
// because the host watches for a module.
func NewWithWatch(config *rest.Config, options Options) (WithWatch, error) {
	c, err := New(config, options)
	if err != nil {
		return nil, err
	}
	return watchless{c}, nil
}

// watchless is a client that cannot watch.
type watchless struct{ Client }

// Watch implements WithWatch.
func (watchless) Watch(context.Context, ObjectList, ...ListOption) (watch.Interface, error) {
	return nil, errors.New("client: a module cannot watch by itself; name the kind by Owns or Watches of the controller's builder")
}

// kindReader is a cache whose caller passes the kind, to save a lookup.
type kindReader interface {
	GetOfKind(ctx context.Context, gvk schema.GroupVersionKind, key ObjectKey, obj Object, opts ...GetOption) error
}

// host is a Client whose calls go to the host.
type host struct {
	call   func() *wasmctl.Client // if nil, the client of the current run
	scheme *runtime.Scheme
	mapper meta.RESTMapper

	cache        Reader
	byKind       kindReader // the cache, if it is a kindReader
	uncached     map[schema.GroupVersionKind]bool
	unstructured bool
}

func (h *host) useCache(o *CacheOptions) error {
	if o == nil || o.Reader == nil {
		return nil
	}
	h.cache, h.unstructured = o.Reader, o.Unstructured
	h.byKind, _ = o.Reader.(kindReader)
	for _, obj := range o.DisableFor {
		gvk, err := h.GroupVersionKindFor(obj)
		if err != nil {
			return err
		}
		h.uncached[gvk] = true
	}
	return nil
}

// cached reports whether reads of the kind into obj use the cache.
func (h *host) cached(obj runtime.Object, gvk schema.GroupVersionKind) bool {
	if h.cache == nil || h.uncached[gvk] {
		return false
	}
	_, unstructured := obj.(runtime.Unstructured)
	return h.unstructured || !unstructured
}

// Scheme implements Client.
func (h *host) Scheme() *runtime.Scheme { return h.scheme }

// RESTMapper implements Client.
func (h *host) RESTMapper() meta.RESTMapper { return h.mapper }

// GroupVersionKindFor implements Client.
func (h *host) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, h.scheme)
}

// IsObjectNamespaced implements Client.
func (h *host) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	gvk, err := codec.KindOfItems(obj, h.scheme)
	if err != nil {
		return false, err
	}
	return apiutil.IsGVKNamespaced(gvk, h.mapper)
}

// caller returns the client of the SDK for the current call of the module.
func (h *host) caller(ctx context.Context) (*wasmctl.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h.call != nil {
		return h.call(), nil
	}
	if c := run.Current(ctx); c != nil {
		return c.Client(), nil
	}
	if program.Early() {
		return early, nil
	}
	return nil, errors.New("client: used outside of Reconcile: a module reaches the cluster only while the host calls it; " +
		"move the call from a goroutine that outlives Reconcile, or from a separate program, into Reconcile")
}
