// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"iter"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// maxIndexes is the maximum number of indexes of a store. Each makes every change of an object more expensive.
	maxIndexes = 64
	// maxValues and maxValueBytes limit the values of one object in an index.
	maxValues, maxValueBytes = 64, 4 << 10
	// unknownBytes is the approximate memory that an index uses for an object whose values it does not know, and valueBytes that for a
	// value in addition to its text.
	unknownBytes, valueBytes = 40, 200
	// freeIndexBytes is the memory that all indexes of a store may use regardless of its size; beyond it, they may use as much as its
	// objects.
	freeIndexBytes = 4 << 20
	// minIdle, plus two per object, is the number of changes after which an unused index is removed: maintaining it has then cost more than
	// rebuilding it would.
	minIdle = 1000
)

// indexKey identifies an index.
type indexKey struct {
	scope any
	name  string
	told  bool
}

func keyOf(index *abi.Index) indexKey {
	return indexKey{index.Scope, index.Name, index.Of == nil}
}

// Indexed yields the objects that have the value in an index. If the index has no Of, it also yields those whose current state Learn has
// not received. The order and everything else is as in Scan.
//
// A store maintains an index once it was used, unless there are too many or they are too large. A new index does not know the values of any
// object, which costs time but does not affect the result.
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

// candidates appends the objects that Indexed must check, up to the capacity of dst. If the index was removed meanwhile, these are all
// objects.
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

// Learn adds the values of objects to an index. Values of a state that is not current are ignored, and so are values for which the index
// has no room.
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

// sizeOf returns the approximate memory that the values of an object use in an index; 0 if they are too many or too large.
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

// index returns an index, and creates it if necessary. It becomes the most recently used index.
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
		s.removeIndex(nil, func(*index) int64 { return 1 })
	}
	s.indexes = append(s.indexes, x)
	s.roomFor(x, 0)
	return x
}

// findIndex returns an index, or nil. The caller must hold mu.
func (s *Store) findIndex(key indexKey) *index {
	for _, x := range s.indexes {
		if x.key == key {
			return x
		}
	}
	return nil
}

// roomFor makes room for size more bytes in x, and reports whether it succeeded. The caller must hold mu.
func (s *Store) roomFor(x *index, size int64) bool {
	for {
		all := size
		for _, y := range s.indexes {
			all += y.bytes
		}
		if all <= freeIndexBytes+s.bytes {
			return true
		}
		if !s.removeIndex(x, func(y *index) int64 { return y.bytes }) {
			return false
		}
	}
}

// removeIndex finds the scope with the highest total weight, and removes its least recently used index, so that a scope with many or large
// indexes does not displace those of others. If that index is except, it removes nothing and returns false. The caller must hold mu.
func (s *Store) removeIndex(except *index, weigh func(*index) int64) bool {
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
	if most == except {
		return false
	}
	s.indexes = slices.DeleteFunc(s.indexes, func(x *index) bool { return x == most })
	return true
}

// changeIndexes records that the state old of an object became o; either may be nil. The caller must hold mu.
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

// index maps values to objects. It is guarded by the store's mu.
type index struct {
	key     indexKey
	values  map[ObjectRef][]string // the values of known objects
	refs    map[string]*order      // the objects that have a value; no order is empty
	unknown *order                 // all other objects
	bytes   int64                  // approximate memory use
	idle    int                    // changes since it was last used
}

// candidates returns the first references after one that have the value or are unknown.
func (x *index) candidates(value string, after ObjectRef, limit int) []ObjectRef {
	refs := x.unknown.appendAfter(nil, after, limit)
	if with := x.refs[value]; with != nil {
		refs = with.appendAfter(refs, after, limit)
		slices.SortFunc(refs, ObjectRef.Compare)
	}
	return refs[:min(len(refs), limit)]
}

// learn records the values of an object. The caller must have called forget for it.
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

// forget removes an object from both the known and the unknown ones.
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
