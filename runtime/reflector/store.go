// SPDX-License-Identifier: Apache-2.0

// Package reflector stores the last seen state of each object of one watch.
//
// A Store is the read side, which anything may use. Its Writer is the only write side, and belongs to the watch (as in kube-rs, so that
// there is exactly one writer). The Writer reports each change as Events: a list or a watch event without news emits none.
//
// Objects are stored packed: see Object.
package reflector

import (
	"maps"
	"slices"
	"sync"
)

// Store is the read side: the last seen object of each reference. It is safe for concurrent use. The lock is held only for short map
// accesses, and the results of its methods are never changed by a later write.
type Store struct {
	mu      sync.RWMutex
	objects map[ObjectRef]*Object // guarded by mu; only the Writer changes it
	bytes   int64                 // guarded by mu; sum of len(Msgpack())
	version string                // guarded by mu; the resourceVersion that the content includes; "" if unknown
	order   *order                // guarded by mu; nil before the first Scan and after a Replace
	owned   owned                 // guarded by mu; nil before the first Owned and after a Replace
	indexes []*index              // guarded by mu; least recently used first; empty after a Replace
	waiters []*waiter             // guarded by mu; calls of AwaitVersion
}

// Get returns the object of ref, or nil if the store has none. A reference with a namespace and one without are different references.
func (s *Store) Get(ref ObjectRef) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[ref]
}

// Version returns the resourceVersion that the content includes, according to the last list, event or bookmark. It is "" before the first
// list, and if the API does not number its versions.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Len returns the number of objects.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Bytes returns the total length of the msgpack of all objects.
func (s *Store) Bytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes
}

// List returns a snapshot of all objects, in no particular order. The caller owns the slice.
func (s *Store) List() []*Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]*Object, 0, len(s.objects)), maps.Values(s.objects))
}
