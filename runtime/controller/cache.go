// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Cache gives access to the objects that the watches of one controller have received. It is created before the controller, so that the
// module's view of the cluster can use it, and is empty until the controller has its watches. It is safe for concurrent use.
type Cache struct {
	handles atomic.Pointer[[]*Handle] // replaced, never modified; the first is that of Config.For
}

// goneEvery is how often awaitGone checks whether an object is gone.
const goneEvery = 5 * time.Millisecond

// NewCache returns a Cache for one Controller.
func NewCache() *Cache {
	c := &Cache{}
	c.handles.Store(&[]*Handle{})
	return c
}

// CacheError is the reason why a cache cannot answer.
type CacheError struct {
	status    abi.Status
	message   string
	elsewhere bool
}

// Error implements error.
func (e *CacheError) Error() string { return e.message }

// Status returns the status to return to a guest.
func (e *CacheError) Status() abi.Status { return e.status }

// Elsewhere reports whether the objects are watched by other replicas.
func (e *CacheError) Elsewhere() bool { return e.elsewhere }

// covering yields the subscriptions that include a resource in a namespace. An empty namespace means all namespaces, and then also matches
// subscriptions of a single namespace.
func (c *Cache) covering(gr schema.GroupResource, namespace string) iter.Seq2[*Handle, *watcher.Subscription] {
	return func(yield func(*Handle, *watcher.Subscription) bool) {
		for _, h := range *c.handles.Load() {
			if h.watch.Resource.GroupResource() != gr {
				continue
			}
			for _, s := range h.all() {
				ns, part := s.Source().Namespace, s.Source().Shard
				if part.Field == slots.Namespace && namespace != "" && !part.Has("", namespace) {
					continue
				}
				if (ns == "" || namespace == "" || ns == namespace) && !yield(h, s) {
					return
				}
			}
		}
	}
}

// stores returns the subscriptions that can answer for a resource, those with complete objects first, or a *CacheError.
func (c *Cache) stores(gvr schema.GroupVersionResource, namespace string) ([]*watcher.Subscription, error) {
	var full, partial []*watcher.Subscription
	var other string
	for h, s := range c.covering(gvr.GroupResource(), namespace) {
		if h.watch.Resource.Version != gvr.Version {
			other = h.watch.Resource.Version
			continue
		}
		if s.Phase() == watcher.Denied {
			return nil, &CacheError{status: abi.StatusDenied, message: fmt.Sprintf("the cache of %s is closed: %s", s.Source(), s.State().Message)}
		}
		if s.Store().Len() == 0 && !isClosed(s.Synced()) {
			return nil, &CacheError{status: abi.StatusNotSynced, message: fmt.Sprintf("the watch of %s has not listed yet: %s", s.Source(), s.State())}
		}
		if s.Source().Metadata {
			partial = append(partial, s)
		} else {
			full = append(full, s)
		}
	}
	if err := c.elsewhere(gvr, namespace); err != nil {
		return nil, err
	}
	if len(full)+len(partial) == 0 {
		return nil, notWatched(gvr, namespace, other)
	}
	return append(full, partial...), nil
}

func notWatched(gvr schema.GroupVersionResource, namespace, other string) error {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	hint := "declare it in watches or owns of the manifest, or ask the API server with api_get or api_list"
	if other != "" {
		hint = "the controller watches version " + other
	}
	return &CacheError{status: abi.StatusBadRequest, message: fmt.Sprintf("the controller does not watch %s of version %s%s: %s", gvr.GroupResource(), gvr.Version, where, hint)}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Get returns the msgpack of an object of a watched resource, or nil if the cache does not have it. The error is a *CacheError.
func (c *Cache) Get(gvr schema.GroupVersionResource, key abi.Key) ([]byte, error) {
	subs, err := c.stores(gvr, key.Namespace)
	if elsewhere, ok := errors.AsType[*CacheError](err); ok && elsewhere.elsewhere {
		subs = subs[:0]
		for h, s := range c.covering(gvr.GroupResource(), key.Namespace) {
			if h.watch.Resource == gvr && s.Store().Get(key) != nil {
				subs, err = append(subs, s), nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for _, s := range subs {
		if o := s.Store().Get(key); o != nil {
			return o.Msgpack(), nil
		}
	}
	return nil, nil
}

// Stored returns an object, or nil. For an object, complete reports whether its content is complete and in this version of the resource.
// For nil, complete reports whether a watch would have the object if it existed.
func (c *Cache) Stored(gvr schema.GroupVersionResource, key abi.Key) (o abi.Stored, complete bool) {
	for h, s := range c.covering(gvr.GroupResource(), key.Namespace) {
		found := s.Store().Get(key)
		switch {
		case found == nil && o == nil:
			complete = complete || h.watch.LabelSelector == "" && h.watch.FieldSelector == "" && s.Source().Shard.N == 0 && isClosed(s.Synced())
		case found != nil && !s.Source().Metadata && h.watch.Resource == gvr:
			return found, true
		case found != nil:
			o, complete = found, false
		}
	}
	return o, complete
}

// Epoch implements kubeapi.Cache. See watcher.Subscription.Epoch.
func (c *Cache) Epoch() uint64 {
	for _, h := range *c.handles.Load() {
		for _, s := range h.all() {
			return s.Epoch() // all share one Set
		}
	}
	return 0
}

// RanBackwards implements kubeapi.Cache. See watcher.Subscription.RanBackwards.
func (c *Cache) RanBackwards(gvr schema.GroupVersionResource) {
	for _, s := range c.covering(gvr.GroupResource(), "") {
		s.RanBackwards() // all share one Set
		return
	}
}

// Children yields the objects of owned kinds whose controlling owner has this uid, until yield returns false.
func (c *Cache) Children(_ abi.Key, uid string, yield func(gvr schema.GroupVersionResource, child abi.Key, uid, resourceVersion string) bool) {
	for _, h := range *c.handles.Load() {
		if !h.watch.Owned {
			continue
		}
		for _, s := range h.all() {
			for o := range s.Store().Owned(uid, "", abi.Key{}) {
				if o.ControllerUID() == uid && !yield(h.watch.Resource, o.Ref(), o.UID(), o.ResourceVersion()) {
					return
				}
			}
		}
	}
}

// Version implements applier.Cache.
func (c *Cache) Version(w *abi.Write) (resourceVersion string, watched bool) {
	for h, s := range c.writtenTo(w) {
		if o := s.Store().Get(w.Key); o != nil {
			return o.ResourceVersion(), true
		}
		watched = watched || h.selects(w)
	}
	return "", watched
}

// AwaitWrites implements applier.Cache.
func (c *Cache) AwaitWrites(ctx context.Context, writes []abi.Write) (stale bool) {
	for i := range writes {
		w := &writes[i]
		for h, s := range c.writtenTo(w) {
			if !h.selects(w) && s.Store().Get(w.Key) == nil {
				continue // the watch never includes it
			}
			if w.Deleted && w.ResourceVersion == "" {
				stale = !awaitGone(ctx, s.Store(), w)
			} else {
				stale = s.Store().AwaitVersion(ctx, w.Key, w.ResourceVersion) != nil
			}
			if stale {
				return true // ctx has ended
			}
		}
	}
	return false
}

// awaitGone waits until the store no longer has the object that w deleted: the API server answers such a deletion without a version to wait
// for. It returns false if ctx ends first.
func awaitGone(ctx context.Context, store *reflector.Store, w *abi.Write) bool {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	uid := w.UID
	for {
		o := store.Get(w.Key)
		if o == nil || uid != "" && o.UID() != uid {
			return true
		}
		uid = o.UID()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// writtenTo yields the subscriptions in which a write can appear, whatever version of the resource it used.
func (c *Cache) writtenTo(w *abi.Write) iter.Seq2[*Handle, *watcher.Subscription] {
	return func(yield func(*Handle, *watcher.Subscription) bool) {
		for h, s := range c.covering(schema.GroupResource{Group: w.Group, Resource: w.Resource}, w.Key.Namespace) {
			if s.Source().Shard.Has(w.UID, w.Key.Namespace) && !yield(h, s) {
				return
			}
		}
	}
}

// selects reports whether a watch selects an object with the labels of w. A field selector cannot be evaluated: the answer is then no.
func (h *Handle) selects(w *abi.Write) bool {
	return h.watch.FieldSelector == "" && h.selector.Matches(labels.Set(w.Labels))
}
