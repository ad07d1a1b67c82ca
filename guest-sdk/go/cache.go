package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Cache reads the objects that the host watches for this module (Manifest.For,
// Owns and Watches), without a request to the API server. It needs the same
// rights as the Client, get and list; it needs none for the kind of
// Manifest.For. The cache may lag behind the cluster for a moment. It has the
// writes of the object's last run, unless Context.Stale returns true. Objects
// have no metadata.managedFields. Objects of a MetadataOnly watch have only
// metadata.
//
// Every error of a call is an *Error. IsNotFound is true for a missing object.
// IsNotSynced is true if the watch has not listed its objects yet. The status
// is StatusBadRequest for a kind that is not watched, and the message says what
// to declare.
type Cache struct {
	g *guest
}

// CacheListOptions of Cache.List and Cache.All. The zero value is everything.
type CacheListOptions struct {
	// LabelSelector is written as for kubectl.
	LabelSelector string
	// FieldSelector is too, and may name any field that is a text, a number or a
	// bool: "spec.nodeName=a,status.ready!=true".
	FieldSelector string
	// Owner is the UID of an object: only objects with an owner reference to it,
	// which the host finds without a look at the others.
	Owner string
	// Index and Value leave out the objects that the host knows not to have the value in
	// the index. It may not know all: compare each. See Index.
	Index *Index
	Value string
	// Limit is the number of objects in a page, 500 if it is not set. Continue,
	// from List.Continue, asks for the next page. It stays valid whatever
	// changes.
	Limit    int64
	Continue string
}

// Get returns one object.
func (c *Cache) Get(ref ObjectRef) (Object, error) {
	b := begin(c.g, ref)
	return object(c.g, &imports.CacheGet, b.End(), ref)
}

// List returns one page of the objects of ref's kind, ordered by namespace and
// name; see All. It lists ref's namespace, or all if ref has none. ref has no
// name, and the list has no resourceVersion.
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

// pages walks the objects of all pages. list is called with "" at first.
//
// An iterator of this kind works with TinyGo, save that a defer in the body of
// its loop does not compile there.
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

// each calls yield with the objects of the page until that is false. It returns what
// Continue does: what is behind the objects is found without another look at them.
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
