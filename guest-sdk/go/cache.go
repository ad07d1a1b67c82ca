package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
)

// Cache reads the objects that the host watches for this module, Manifest.For,
// Owns and Watches, without a request to the API server. The rights that it
// needs are those of the Client, get and list; none for the kind of Manifest.For.
// It may lag behind the cluster for a moment; the writes of the
// object's last run are in it, unless Context.Stale says otherwise. Objects
// have no metadata.managedFields, and nothing but metadata where the watch is
// MetadataOnly.
//
// Every error of a call is an *Error: IsNotFound; IsNotSynced where the watch
// has not listed its objects yet; StatusBadRequest for a kind that is not
// watched, with a message that says what to declare.
type Cache struct {
	g *guest
}

// CacheListOptions of Cache.List and Cache.All. The zero value is everything.
type CacheListOptions struct {
	// LabelSelector is written as for kubectl.
	LabelSelector string
	// Limit is how many objects a page has, 500 if it is not set; Continue, from
	// List.Continue, asks for the next one. It stays good whatever changes.
	Limit    int64
	Continue string
}

// Get returns one object.
func (c *Cache) Get(ref ObjectRef) (Object, error) {
	b := begin(c.g, ref)
	return object(c.g, &imports.CacheGet, b.End(), ref)
}

// List returns one page of the objects of ref's kind in ref's namespace, or in
// all where it has none, ordered by namespace and name; see All. ref has no
// name, and the list has no resourceVersion.
func (c *Cache) List(ref ObjectRef, opts CacheListOptions) (List, error) {
	if ref.Name != "" {
		return List{}, errors.New("cache_list " + ref.String() + ": a list has no name; use Get")
	}
	b := begin(c.g, ref)
	b.String("labelSelector", opts.LabelSelector)
	b.Int("limit", opts.Limit)
	b.String("continue", opts.Continue)
	o, err := object(c.g, &imports.CacheList, b.End(), ref)
	return List{o.Value}, err
}

// All walks the objects that List returns, page by page: opts.Limit at a time.
// An error ends the walk.
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
		for next := ""; ; {
			page, err := list(next)
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, o := range page.Items() {
				if !yield(o, nil) {
					return
				}
			}
			if next = page.Continue(); next == "" {
				return
			}
		}
	}
}
