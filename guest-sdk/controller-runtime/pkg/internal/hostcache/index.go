// SPDX-License-Identifier: Apache-2.0

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
		return fmt.Errorf("index[%s %s]: already exists", gvk.Kind, field)
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

// index computes the values of a field. The program's function runs in the
// module, and the objects are in the host. The module reports to the host the
// values of listed objects that do not match.
type index struct {
	extract client.IndexerFunc
	// byForm has the host's indexes by the form of the listed objects. As with
	// controller-runtime, the function receives objects of that form, and may
	// return different values for each form. It is nil without indexes in the
	// host.
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

// newIndex returns an index of the nth cache of the program. Each cache has its
// own functions.
func newIndex(n int, field string, extract client.IndexerFunc) *index {
	x := &index{extract: extract, byForm: new([forms]*wasmctl.Index)}
	for form := range x.byForm {
		x.byForm[form] = wasmctl.NewIndex(fmt.Sprintf("%d/%d/%s", n, form, field))
	}
	return x
}

// want is a required value of an index.
type want struct {
	index *index
	value string
}

// matcher evaluates a field selector.
type matcher struct {
	nothing bool
	wants   []want
}

// ask adds the index to the options of a list of the host.
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

// matches reports whether an object matches. If the object lacks the required
// value of an index of the host, it calls tell with the index and all values.
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
