// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// watch is one watch of the module.
type watch struct {
	abi.Watch

	kind     memapi.Kind
	selector labels.Selector
	owned    bool
}

func (w *watch) resource() schema.GroupVersionResource {
	return w.kind.GroupVersion().WithResource(w.kind.Resource)
}

// entry is an object of the cache.
type entry struct {
	watch  *watch
	object *reflector.Object
}

// cache has the objects that the module's watches have delivered before a run. It implements
// kubeapi.Cache and kubeapi.Children.
type cache struct {
	watches []*watch
	entries []entry // ordered by namespace and name
	behind  bool    // some of the cluster's objects are missing
}

// fill replaces the content of the cache with the objects that the watches see. behind means that the case
// leaves some objects out.
func (c *cache) fill(objects []map[string]any, behind bool) error {
	c.entries, c.behind = nil, behind
	for _, object := range objects {
		for _, w := range c.watches {
			if object["kind"] != w.kind.Kind || object["apiVersion"] != w.kind.GroupVersion().String() {
				continue
			}
			o, err := reflector.Pack(object, reflector.Options{Metadata: w.MetadataOnly})
			if err != nil {
				return err
			}
			if (len(w.Namespaces) == 0 || slices.Contains(w.Namespaces, o.Ref().Namespace)) && w.selector.Matches(o.Labels()) {
				c.entries = append(c.entries, entry{w, o})
			}
		}
	}
	slices.SortStableFunc(c.entries, func(a, b entry) int { return a.object.Ref().Compare(b.object.Ref()) })
	return nil
}

// notWatched is the error about a resource that the module does not watch.
type notWatched struct{ message string }

// Error implements error.
func (e *notWatched) Error() string { return e.message }

// Status returns the status of the guest's answer. kubeapi.Cache requires it.
func (e *notWatched) Status() abi.Status { return abi.StatusBadRequest }

// watched returns an error if no watch has this resource.
func (c *cache) watched(gvr schema.GroupVersionResource) error {
	if slices.ContainsFunc(c.watches, func(w *watch) bool { return w.resource() == gvr }) {
		return nil
	}
	return &notWatched{fmt.Sprintf("the controller does not watch %s of version %s: declare it in watches or owns of the manifest, or ask the API server with api_get or api_list",
		gvr.GroupResource(), gvr.Version)}
}

// lookup returns the object of the reconciled kind. It implements applier.Lookup.
func (c *cache) lookup(key abi.Key) applier.Object {
	if o := c.find(c.watches[0].resource(), key); o != nil {
		return o
	}
	return nil
}

// find returns an object, or nil.
func (c *cache) find(gvr schema.GroupVersionResource, key abi.Key) *reflector.Object {
	for _, e := range c.entries {
		if e.watch.resource() == gvr && e.object.Ref() == key {
			return e.object
		}
	}
	return nil
}

// Get implements kubeapi.Cache.
func (c *cache) Get(gvr schema.GroupVersionResource, key abi.Key) ([]byte, error) {
	if err := c.watched(gvr); err != nil {
		return nil, err
	}
	if o := c.find(gvr, key); o != nil {
		return o.Msgpack(), nil
	}
	return nil, nil
}

// Stored implements kubeapi.Cache. Only for owned kinds, it knows that an object does not exist, unless the
// case leaves objects out.
func (c *cache) Stored(gvr schema.GroupVersionResource, key abi.Key) (o abi.Stored, complete bool) {
	if o := c.find(gvr, key); o != nil {
		return o, true
	}
	return nil, !c.behind && slices.ContainsFunc(c.watches, func(w *watch) bool {
		return w.owned && w.resource() == gvr && w.selector.Empty() && len(w.Namespaces) == 0
	})
}

// Epoch implements kubeapi.Cache. Versions never run backwards.
func (*cache) Epoch() uint64 { return 0 }

// RanBackwards implements kubeapi.Cache. The cache of a case may be newer than its cluster.
func (*cache) RanBackwards(schema.GroupVersionResource) {}

// List implements kubeapi.Cache.
func (c *cache) List(
	gvr schema.GroupVersionResource, namespace, owner string, _ *abi.Index, matches func(l labels.Labels, object []byte) bool, after abi.Key, limit int,
) (objects [][]byte, more bool, last abi.Key, err error) {
	if err := c.watched(gvr); err != nil {
		return nil, false, last, err
	}
	for _, e := range c.entries {
		ref := e.object.Ref()
		if e.watch.resource() != gvr || namespace != "" && ref.Namespace != namespace || ref.Compare(after) <= 0 ||
			owner != "" && !owns(owner, e.object) || !matches(e.object.Labels(), e.object.Msgpack()) || len(objects) > 0 && ref == last {
			continue
		}
		if len(objects) == limit {
			return objects, true, last, nil
		}
		objects, last = append(objects, e.object.Msgpack()), ref
	}
	return objects, false, last, nil
}

// Learn implements kubeapi.Cache. There is no index.
func (*cache) Learn(schema.GroupVersionResource, *abi.Index, []abi.IndexEntry) {}

// Children implements kubeapi.Children.
func (c *cache) Children(_ abi.Key, uid string, yield func(gvr schema.GroupVersionResource, child abi.Key, uid, resourceVersion string) bool) {
	for _, e := range c.entries {
		if !e.watch.owned {
			continue
		}
		for owner := range e.object.Owners() {
			if owner.Controller && owner.UID == uid && !yield(e.watch.resource(), e.object.Ref(), e.object.UID(), e.object.ResourceVersion()) {
				return
			}
		}
	}
}

// owns reports whether an object has an owner with this UID.
func owns(uid string, o *reflector.Object) bool {
	for owner := range o.Owners() {
		if owner.UID == uid {
			return true
		}
	}
	return false
}
