// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Cache reads the objects that the host watches for this module (Manifest.For,
// Owns and Watches), without a request to the API server. It needs the same
// rights as the Client, get and list; it needs none for the kind of
// Manifest.For. The cache may lag behind the cluster for a moment. It includes
// the writes of the object's last run, unless Context.Stale returns true.
// Objects have no metadata.managedFields. Objects of a MetadataOnly watch have
// only apiVersion, kind and metadata.
//
// Every error of a call is an *Error. IsNotFound is true for a missing object.
// IsNotSynced is true if the watch has not listed its objects yet. For a kind
// that is not watched, the status is StatusBadRequest, and the message names
// the missing declaration.
type Cache struct {
	g *guest
}

// CacheListOptions are the options of Cache.List and Cache.All. The zero value
// lists everything.
type CacheListOptions struct {
	// LabelSelector has the syntax of kubectl.
	LabelSelector string
	// FieldSelector has it too, and may name any field that is a string, a
	// number or a bool: "spec.nodeName=a,status.ready!=true".
	FieldSelector string
	// Owner is the UID of an object: the list then has only objects with an
	// owner reference to it. The host finds them without a scan of the others.
	Owner string
	// Index and Value leave out the objects whose values in the index, as far
	// as the host has them, do not include Value. The host may not have the
	// values of all objects: check each object. See Index.
	Index *Index
	Value string
	// Limit is the number of objects in a page, 500 if it is not set. Continue,
	// from List.Continue, asks for the next page. It stays valid when objects
	// change.
	Limit    int64
	Continue string
}

// Get returns one object.
func (c *Cache) Get(ref ObjectRef) (Object, error) {
	b := begin(c.g, ref)
	return object(c.g, &imports.CacheGet, b.End(), ref)
}

// List returns one page of the objects of ref's kind, ordered by namespace and
// name; see All. It lists ref's namespace, or all namespaces if ref has none.
// ref must have no name. The list has no resourceVersion.
func (c *Cache) List(ref ObjectRef, opts CacheListOptions) (List, error) {
	if ref.Name != "" {
		return List{}, errors.New("cache_list " + ref.String() + ": a list has no name; use Get")
	}
	b := begin(c.g, ref)
	b.String("labelSelector", opts.LabelSelector)
	b.String("fieldSelector", opts.FieldSelector)
	b.String("owner", opts.Owner)
	if err := opts.Index.append(&b, opts.Value); err != nil {
		return List{}, badValue(&imports.CacheList, ref, err)
	}
	b.Int("limit", opts.Limit)
	b.String("continue", opts.Continue)
	o, err := object(c.g, &imports.CacheList, b.End(), ref)
	return List{o.Value}, err
}

// All iterates over the objects that List returns, page by page: opts.Limit at
// a time. An error ends the iteration.
//
//	for obj, err := range ctx.Cache().All(ref, wasmctl.CacheListOptions{}) {
//		if err != nil {
//			return action, err
//		}
//		...
//	}
func (c *Cache) All(ref ObjectRef, opts CacheListOptions) func(yield func(Object, error) bool) {
	return pages(func(next string) (List, error) {
		if next != "" {
			opts.Continue = next
		}
		return c.List(ref, opts)
	})
}

// pages iterates over the objects of all pages. The first call of list passes
// "".
//
// Iterators of this kind work with TinyGo, but a defer in the body of the loop
// does not compile there.
func pages(list func(next string) (List, error)) func(yield func(Object, error) bool) {
	return func(yield func(Object, error) bool) {
		for next, more := "", true; more; more = next != "" {
			page, err := list(next)
			if err != nil {
				yield(Object{}, err)
				return
			}
			if next, more = page.each(yield); !more {
				return
			}
		}
	}
}

// each calls yield with the objects of the page until yield returns false. It
// returns the value of Continue too, because the end of the items is where the
// metadata starts: a separate call would scan the items again.
func (l List) each(yield func(Object, error) bool) (next string, more bool) {
	for it := wire.Walk(l.view); it.Next(); {
		switch string(it.Key) {
		case "metadata":
			next = Value{it.Value}.String("continue")
		case "items":
			items := wire.Walk(it.Value)
			for wire.TypeOf(it.Value) == wire.Array && items.Next() {
				if !yield(Object{Value: Value{items.Value}}, nil) {
					return "", false
				}
			}
			it.Walked(&items)
		}
	}
	return next, true
}
