// Package reflector keeps the last seen state of each object of one watch.
//
// A Store is the side that everyone may read; its Writer is the one side that
// changes it and is held by the watch alone (kube-rs splits them the same way,
// so that "who wrote this?" has one answer). The Writer says what each change
// was, as Events: a list or a watch event that shows nothing new gives none.
//
// Objects are kept packed: see Object.
package reflector

import (
	"maps"
	"slices"
	"sync"
)

// Store is the read side: the last seen object of each ref. It is safe for
// concurrent use; the lock is held for a map access only, and what a method
// returns is never changed by a later write.
type Store struct {
	mu      sync.RWMutex
	objects map[ObjectRef]*Object // guarded by mu; only the Writer changes it
	bytes   int64                 // guarded by mu; sum of len(Msgpack())
	version string                // guarded by mu; the resourceVersion that the content includes; "" where unknown
	order   *order                // guarded by mu; nil before the first Scan and after a Replace
	owned   owned                 // guarded by mu; nil before the first Owned and after a Replace
	indexes []*index              // guarded by mu; as they were asked for, the last one last; none after a Replace
	waiters []*waiter             // guarded by mu; calls of AwaitVersion
}

// Get returns the object of ref, or nil where the store has none. A ref with a
// namespace and one without are different refs.
func (s *Store) Get(ref ObjectRef) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[ref]
}

// Version returns the resourceVersion that the content includes, by the last
// list, event or bookmark; "" before the first list, and where the API does not
// number its versions.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Len returns how many objects the store has.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Bytes returns the length of all objects' msgpack together.
func (s *Store) Bytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes
}

// List returns all objects as of one moment, in no particular order. The slice
// is the caller's.
func (s *Store) List() []*Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]*Object, 0, len(s.objects)), maps.Values(s.objects))
}
