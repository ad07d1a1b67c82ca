package hostcache

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

type indexKey struct {
	gvk   schema.GroupVersionKind
	field string
}

// IndexField implements client.FieldIndexer.
func (c *Cache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := indexKey{gvk, field}
	if c.indexes[key] != nil {
		return fmt.Errorf("index[%s %s]: is there already", gvk.Kind, field)
	}
	c.indexes[key] = newIndex(c.number, field, extract)
	return nil
}

func (c *Cache) indexer(gvk schema.GroupVersionKind, field string) *index {
	switch field {
	case "metadata.name":
		return &index{extract: func(obj client.Object) []string { return []string{obj.GetName()} }}
	case "metadata.namespace":
		return &index{extract: func(obj client.Object) []string { return []string{obj.GetNamespace()} }}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.indexes[indexKey{gvk, field}]
}

// index tells the values of a field. The program's function is here, and the objects are
// at the host, which gets the values of those that it listed and that do not match.
type index struct {
	extract client.IndexerFunc
	// The host's indexes by what is listed: as with controller-runtime, the function is
	// given objects of that form, and may know other values of each. Nil: none.
	byForm *[forms]*wasmctl.Index
}

// The forms of objects in a list.
const (
	typed = iota
	untyped
	metadata
	forms
)

func formOf(list runtime.Object) int {
	switch _, unstructured := list.(runtime.Unstructured); {
	case isMetadata(list):
		return metadata
	case unstructured:
		return untyped
	}
	return typed
}

// newIndex returns an index of the nth cache of the program. Each has functions of its own.
func newIndex(n int, field string, extract client.IndexerFunc) *index {
	x := &index{extract: extract, byForm: new([forms]*wasmctl.Index)}
	for form := range x.byForm {
		x.byForm[form] = wasmctl.NewIndex(fmt.Sprintf("%d/%d/%s", n, form, field))
	}
	return x
}

// want is a value that an index has to have.
type want struct {
	index *index
	value string
}

// matcher is what a field selector asks of an object.
type matcher struct {
	nothing bool
	wants   []want
}

// ask sets where the host looks.
func (m *matcher) ask(o *wasmctl.CacheListOptions, form int) {
	if m == nil {
		return
	}
	for _, w := range m.wants {
		if w.index.byForm != nil {
			o.Index, o.Value = w.index.byForm[form], w.value
			return
		}
	}
}

// matches reports whether an object matches. Where it lacks the value of an index of the
// host, tell is called with that and all values.
func (m *matcher) matches(obj client.Object, tell func(x *index, values []string)) bool {
	if m == nil {
		return true
	}
	return !m.nothing && !slices.ContainsFunc(m.wants, func(w want) bool {
		values := w.index.extract(obj)
		if slices.Contains(values, w.value) {
			return false
		}
		if w.index.byForm != nil {
			tell(w.index, values)
		}
		return true
	})
}
