// SPDX-License-Identifier: Apache-2.0

// Package hostcache reads the objects that the host watches for the module.
package hostcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/failure"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
)

// Cache reads watched kinds from the host, and all other kinds from the API
// server.
type Cache struct {
	scheme *runtime.Scheme
	api    client.Reader
	own    *Bounds // restrictions; nil for the manager's cache
	number int     // number of this cache in the program

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool // true if only metadata is watched
	indexes map[indexKey]*index
}

// caches counts the caches of the program.
var caches atomic.Int32

// New returns a cache. api reads kinds that are not watched.
func New(scheme *runtime.Scheme, api client.Reader) *Cache {
	return &Cache{scheme: scheme, api: api, number: int(caches.Add(1)), indexes: map[indexKey]*index{}}
}

// Watch sets the kinds that the host watches. The value is true for a watch of
// metadata only.
func (c *Cache) Watch(list map[schema.GroupVersionKind]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = list
}

// has reports whether the host's cache can serve a read into obj.
func (c *Cache) has(obj runtime.Object, gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	metadataOnly, ok := c.watched[gvk]
	return ok && (!metadataOnly || isMetadata(obj))
}

// current returns the SDK's cache for the current call of the module.
func current(ctx context.Context) (*wasmctl.Cache, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c := run.Current(ctx); c != nil {
		return c.Cache(), nil
	}
	return nil, fmt.Errorf("%w; move the call from main into Reconcile", &cache.ErrCacheNotStarted{})
}

// Get implements client.Reader.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	return c.GetOfKind(ctx, gvk, key, obj, opts...)
}

// GetOfKind is Get for an object of that kind.
func (c *Cache) GetOfKind(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	ref := codec.RefTo(gvk, key.Namespace, key.Name)
	fromAPI := func() error {
		err := c.api.Get(ctx, key, obj, opts...)
		if err == nil {
			codec.SetKind(obj, ref.APIVersion, ref.Kind)
		}
		return err
	}
	if !c.has(obj, gvk) {
		return fromAPI()
	}
	host, err := current(ctx)
	if err != nil {
		return err
	}
	if key.Name == "" {
		return notFound(gvk, key)
	}
	got, err := host.Get(ref)
	if pending(err, gvk) {
		return fromAPI()
	}
	if err = failure.NoMatch(failure.FromHost(err), gvk); apierrors.IsNotFound(err) {
		return notFound(gvk, key)
	}
	if err != nil {
		return err
	}
	if err := codec.Decode(got, obj); err != nil {
		return err
	}
	codec.SetKind(obj, ref.APIVersion, ref.Kind)
	return nil
}

// notFound returns the error of the real cache, which names the kind. The API
// server names the resource.
func notFound(gvk schema.GroupVersionKind, key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

// pending reports whether the host's cache cannot answer because it does not
// watch the kind, or has not listed it yet, and the API server may lack the
// kind. Then the caller reads from the API server.
func pending(err error, gvk schema.GroupVersionKind) bool {
	e, ok := wasmctl.AsError(err)
	if !ok || !kinds.MayLack(gvk.GroupKind()) {
		return false
	}
	switch e.Status {
	case wasmctl.StatusNotSynced, wasmctl.StatusBadRequest:
		return true
	}
	return meta.IsNoMatchError(failure.NoMatch(failure.FromHost(err), gvk))
}

// RemoveInformer implements cache.Informers.
func (*Cache) RemoveInformer(context.Context, client.Object) error { return nil }

// Start implements cache.Informers.
func (*Cache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements cache.Informers.
func (*Cache) WaitForCacheSync(context.Context) bool { return true }

// errContinue is the error that the real cache returns.
var errContinue = errors.New("cache: a list of a watched kind has no pages: it does not come from the API server; remove client.Continue")
