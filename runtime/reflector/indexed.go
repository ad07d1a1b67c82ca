package reflector

import (
	"iter"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// maxIndexes is how many indexes a store has, at most. Each costs something with
	// each change of an object.
	maxIndexes = 16
	// maxValues and maxValueBytes bound what an index keeps of one object.
	maxValues, maxValueBytes = 64, 4 << 10
	// indexedBytes is about what an index takes for an object beside its values.
	indexedBytes = 150
	// freeIndexBytes is what all indexes of a store may take whatever it has; beyond
	// that, half of what its objects take.
	freeIndexBytes = 4 << 20
)

// indexKey names an index.
type indexKey struct {
	scope any
	name  string
}

// Indexed yields the objects that have the value in an index, and those whose
// present state Learn was not told of, if the index has no Of. The order and the rest
// are those of Scan.
//
// A store keeps an index that is asked for from then on, or until it has too many.
// Then it knows nothing of any object again, which costs time but no result.
func (s *Store) Indexed(index *abi.Index, namespace string, after ObjectRef) iter.Seq[*Object] {
	x := s.index(indexKey{index.Scope, index.Name})
	candidates := scan(namespace, after, func(dst []*Object, after ObjectRef) []*Object {
		return s.candidates(x, index.Value, dst, after)
	})
	if index.Of == nil {
		return candidates
	}
	return func(yield func(*Object) bool) {
		var others []abi.IndexEntry
		for o := range candidates {
			if values := index.Of(o.Msgpack()); !slices.Contains(values, index.Value) {
				others = append(others, abi.IndexEntry{Namespace: o.ref.Namespace, Name: o.ref.Name, UID: o.uid, ResourceVersion: o.resourceVersion, Values: values})
			} else if !yield(o) {
				break
			}
			if len(others) == scanSize {
				s.Learn(index, others)
				others = others[:0]
			}
		}
		s.Learn(index, others)
	}
}

// candidates appends what Indexed has to look at, up to the capacity of dst. They are
// all objects where the index was dropped meanwhile.
func (s *Store) candidates(x *index, value string, dst []*Object, after ObjectRef) []*Object {
	s.mu.RLock()
	if s.findIndex(x.key) != x {
		s.mu.RUnlock()
		return s.page(dst, after)
	}
	defer s.mu.RUnlock()
	for _, ref := range x.candidates(value, after, cap(dst)) {
		dst = append(dst, s.objects[ref])
	}
	return dst
}

// Learn tells an index the values of objects. Those of a state that is not the
// present one are ignored, and so is what the index has no room for.
func (s *Store) Learn(index *abi.Index, entries []abi.IndexEntry) {
	if len(entries) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.findIndex(indexKey{index.Scope, index.Name})
	if x == nil {
		return
	}
	for i := range entries {
		e := &entries[i]
		o := s.objects[ObjectRef{Namespace: e.Namespace, Name: e.Name}]
		if o == nil || o.uid != e.UID || o.resourceVersion != e.ResourceVersion {
			continue
		}
		if size := sizeOf(e.Values); size > 0 && s.roomFor(x, size) {
			x.forget(o.ref)
			x.learn(o.ref, e.Values, size)
		}
	}
}

// sizeOf is about what the values of an object take in an index; 0 where they are
// too many or too large for one.
func sizeOf(values []string) int64 {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	if len(values) > maxValues || n > maxValueBytes {
		return 0
	}
	return int64(n + indexedBytes*max(1, len(values)))
}

// index returns an index, and makes it where there is none. It becomes the last one
// that is dropped.
func (s *Store) index(key indexKey) *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.findIndex(key)
	if x == nil {
		x = newIndex(key, s.objects)
	} else {
		s.indexes = slices.DeleteFunc(s.indexes, func(y *index) bool { return y == x })
	}
	if len(s.indexes) == maxIndexes {
		s.indexes = slices.Delete(s.indexes, 0, 1)
	}
	s.indexes = append(s.indexes, x)
	return x
}

// findIndex returns an index, or nil. The lock is held.
func (s *Store) findIndex(key indexKey) *index {
	for _, x := range s.indexes {
		if x.key == key {
			return x
		}
	}
	return nil
}

// roomFor makes room in x, at the expense of indexes that were not asked for since,
// and reports whether there is any. The lock is held.
func (s *Store) roomFor(x *index, size int64) bool {
	for size += x.bytes; ; s.indexes = slices.Delete(s.indexes, 0, 1) {
		all := size
		for _, y := range s.indexes {
			if y != x {
				all += y.bytes
			}
		}
		if all <= freeIndexBytes+s.bytes/2 {
			return true
		}
		if s.indexes[0] == x {
			return false
		}
	}
}

// changeIndexes notes that the state old of an object became o; either may be nil.
// The lock is held.
func (s *Store) changeIndexes(old, o *Object) {
	for _, x := range s.indexes {
		if old != nil {
			x.forget(old.ref)
		}
		if o != nil {
			x.unknown.add(o.ref)
		}
	}
}

// index says which objects have a value. The store's lock guards it.
type index struct {
	key     indexKey
	values  map[ObjectRef][]string // of the objects that are known
	refs    map[string]*order      // those that have a value; none is empty
	unknown *order                 // the others
	bytes   int64                  // about what it takes
}

func newIndex(key indexKey, objects map[ObjectRef]*Object) *index {
	return &index{key: key, values: map[ObjectRef][]string{}, refs: map[string]*order{}, unknown: newOrder(keysOf(objects))}
}

// candidates returns the first refs after one that have the value or are unknown.
func (x *index) candidates(value string, after ObjectRef, limit int) []ObjectRef {
	refs := x.unknown.appendAfter(nil, after, limit)
	if with := x.refs[value]; with != nil {
		refs = with.appendAfter(refs, after, limit)
		slices.SortFunc(refs, ObjectRef.Compare)
	}
	return refs[:min(len(refs), limit)]
}

// learn notes the values of an object that was forgotten.
func (x *index) learn(ref ObjectRef, values []string, size int64) {
	x.unknown.remove(ref)
	x.values[ref] = values
	x.bytes += size
	for _, v := range values {
		if x.refs[v] == nil {
			x.refs[v] = &order{}
		}
		x.refs[v].add(ref)
	}
}

// forget makes an object neither known nor unknown.
func (x *index) forget(ref ObjectRef) {
	values, known := x.values[ref]
	if !known {
		x.unknown.remove(ref)
		return
	}
	delete(x.values, ref)
	x.bytes -= sizeOf(values)
	for _, v := range values {
		if with := x.refs[v]; with != nil {
			if with.remove(ref); len(with.chunks) == 0 {
				delete(x.refs, v)
			}
		}
	}
}
