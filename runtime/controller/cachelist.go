// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// List returns up to limit objects of a watched resource whose key comes after the given one, ordered by namespace and name, with the key
// of the last of them; more reports whether there are further ones. An empty namespace means all watched namespaces. If owner is not empty,
// only objects with an owner of that uid are returned. With an index, objects that are known not to have the value are omitted. The error
// is a *CacheError.
func (c *Cache) List(
	gvr schema.GroupVersionResource, namespace, owner string, index *abi.Index, matches func(l labels.Labels, object []byte) bool, after abi.Key, limit int,
) (objects [][]byte, more bool, last abi.Key, err error) {
	subs, err := c.stores(gvr, namespace)
	if err != nil {
		return nil, false, last, err
	}
	var found []*reflector.Object
	for _, s := range subs {
		n := 0
		for o := range candidates(s.Store(), namespace, owner, index, after) {
			if !matches(o.Labels(), o.Msgpack()) {
				continue
			}
			found = append(found, o)
			if n++; n > limit { // one more than the limit, to detect that there are more
				break
			}
		}
	}
	// Watches of one resource with different selectors can have the same object.
	slices.SortStableFunc(found, func(a, b *reflector.Object) int { return a.Ref().Compare(b.Ref()) })
	found = slices.CompactFunc(found, func(a, b *reflector.Object) bool { return a.Ref() == b.Ref() })
	if more = len(found) > limit; more {
		found = found[:limit]
	}
	for _, o := range found {
		objects = append(objects, o.Msgpack())
		last = o.Ref()
	}
	return objects, more, last, nil
}

// candidates yields the objects of a store that List must check.
func candidates(store *reflector.Store, namespace, owner string, index *abi.Index, after abi.Key) iter.Seq[*reflector.Object] {
	switch {
	case owner != "":
		return store.Owned(owner, namespace, after)
	case index != nil:
		return store.Indexed(index, namespace, after)
	}
	return store.Scan(namespace, after)
}

// Learn adds the values of objects to an index of a watched resource.
func (c *Cache) Learn(gvr schema.GroupVersionResource, index *abi.Index, entries []abi.IndexEntry) {
	for h, s := range c.covering(gvr.GroupResource(), "") {
		if h.watch.Resource == gvr {
			s.Store().Learn(index, entries)
		}
	}
}
