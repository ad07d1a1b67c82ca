package reflector

import (
	"iter"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// maxIndexes is how many indexes a store has, at most. Each costs something with
	// each change of an object.
	maxIndexes = 64
	// maxValues and maxValueBytes bound what an index keeps of one object.
	maxValues, maxValueBytes = 64, 4 << 10
	// unknownBytes is about what an index takes for an object that it does not know,
	// and valueBytes for a value beside its text.
	unknownBytes, valueBytes = 40, 200
	// freeIndexBytes is what all indexes of a store may take whatever it has; beyond
	// that, as much as its objects.
	freeIndexBytes = 4 << 20
	// minIdle is how many changes an index lives through without being asked, and two
	// more for each object: then it has cost more than to make it again.
	minIdle = 1000
)

// indexKey names an index.
type indexKey struct {
	scope any
	name  string
	told  bool
}

func keyOf(index *abi.Index) indexKey {
	return indexKey{index.Scope, index.Name, index.Of == nil}
}

// Indexed yields the objects that have the value in an index, and those whose
// present state Learn was not told of, if the index has no Of. The order and the rest
// are those of Scan.
//
// A store keeps an index that was asked for, unless it has too many or they are too
// large. A new one knows nothing of any object, which costs time but no result.
func (s *Store) Indexed(index *abi.Index, namespace string, after ObjectRef) iter.Seq[*Object] {
	x := s.index(keyOf(index))
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
	x := s.findIndex(keyOf(index))
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
	return int64(n + valueBytes*max(1, len(values)))
}

// index returns an index, and makes it where there is none. Of its scope it becomes the
// last one that is dropped.
func (s *Store) index(key indexKey) *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.findIndex(key)
	if x == nil {
		if s.order == nil {
			s.order = newOrder(s.objects)
		}
		x = &index{key: key, values: map[ObjectRef][]string{}, refs: map[string]*order{}, unknown: s.order.clone()}
		x.bytes = int64(len(s.objects)) * unknownBytes
	} else {
		s.indexes = slices.DeleteFunc(s.indexes, func(y *index) bool { return y == x })
	}
	x.idle = 0
	for len(s.indexes) >= maxIndexes {
		s.dropIndex(nil, func(*index) int64 { return 1 })
	}
	s.indexes = append(s.indexes, x)
	s.roomFor(x, 0)
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

// roomFor makes room for so many more bytes in x, and reports whether there is. The
// lock is held.
func (s *Store) roomFor(x *index, size int64) bool {
	for {
		all := size
		for _, y := range s.indexes {
			all += y.bytes
		}
		if all <= freeIndexBytes+s.bytes {
			return true
		}
		if !s.dropIndex(x, func(y *index) int64 { return y.bytes }) {
			return false
		}
	}
}

// dropIndex drops, of the scope whose indexes weigh most, the one that was not asked for
// longest. So nobody who makes many or large ones takes the room of another. It reports
// false where that is keep. The lock is held.
func (s *Store) dropIndex(keep *index, weigh func(*index) int64) bool {
	weights := map[any]int64{}
	for _, x := range s.indexes {
		weights[x.key.scope] += weigh(x)
	}
	var most *index
	for _, x := range s.indexes {
		if most == nil || weights[x.key.scope] > weights[most.key.scope] {
			most = x
		}
	}
	if most == keep {
		return false
	}
	s.indexes = slices.DeleteFunc(s.indexes, func(x *index) bool { return x == most })
	return true
}

// changeIndexes notes that the state old of an object became o; either may be nil.
// The lock is held.
func (s *Store) changeIndexes(old, o *Object) {
	if len(s.indexes) == 0 {
		return
	}
	for _, x := range s.indexes {
		x.idle++
		if old != nil {
			x.forget(old.ref)
		}
		if o != nil {
			x.unknown.add(o.ref)
			x.bytes += unknownBytes
		}
	}
	s.indexes = slices.DeleteFunc(s.indexes, func(x *index) bool { return x.idle > minIdle+2*len(s.objects) })
}

// index says which objects have a value. The store's lock guards it.
type index struct {
	key     indexKey
	values  map[ObjectRef][]string // of the objects that are known
	refs    map[string]*order      // those that have a value; none is empty
	unknown *order                 // the others
	bytes   int64                  // about what it takes
	idle    int                    // changes since it was asked for
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
		x.bytes -= unknownBytes
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
