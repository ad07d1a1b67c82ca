package hostcache

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

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
	c.indexes[key] = &index{extract: extract}
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

// version is one state of one object.
type version struct{ uid, resourceVersion string }

// index tells the values of a field. It asks the program's function once for each version
// of an object, as far as it remembers: the host has the objects, and the function is here.
type index struct {
	extract client.IndexerFunc

	mu          sync.Mutex
	now, before map[version][]string
}

// maxRemembered bounds what an index remembers: twice as many versions of objects.
const maxRemembered = 4096

// recall returns the values of a version, if they are known.
func (x *index) recall(at version) ([]string, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if values, ok := x.now[at]; ok {
		return values, true
	}
	values, ok := x.before[at]
	if ok {
		x.remember(at, values)
	}
	return values, ok
}

// remember notes the values of a version. The versions that were not asked for lately are
// forgotten.
func (x *index) remember(at version, values []string) {
	if len(x.now) >= maxRemembered || x.now == nil {
		x.now, x.before = map[version][]string{}, x.now
	}
	x.now[at] = values
}

// values returns those of an object.
func (x *index) values(at version, obj client.Object) []string {
	if values, ok := x.recall(at); ok {
		return values
	}
	values := x.extract(obj)
	if at.uid != "" && at.resourceVersion != "" {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.remember(at, values)
	}
	return values
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

// rejects reports whether a version is known not to match.
func (m *matcher) rejects(at version) bool {
	return m.nothing || slices.ContainsFunc(m.wants, func(w want) bool {
		values, known := w.index.recall(at)
		return known && !slices.Contains(values, w.value)
	})
}

// matches reports whether an object matches.
func (m *matcher) matches(at version, obj client.Object) bool {
	if m == nil {
		return true
	}
	return !m.nothing && !slices.ContainsFunc(m.wants, func(w want) bool {
		return !slices.Contains(w.index.values(at, obj), w.value)
	})
}
