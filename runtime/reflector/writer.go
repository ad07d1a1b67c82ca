// SPDX-License-Identifier: Apache-2.0

package reflector

import "maps"

// Writer is the only write side of a Store. It belongs to one goroutine.
//
// Its methods call emit for each Event after the store has changed, without holding the lock. A reader may therefore see a state before its
// event.
type Writer struct {
	// Account, if not nil, is charged for the objects of the store until Close. It must be set before the first object is stored.
	Account *Account

	store *Store
}

// NewWriter returns the Writer of a new, empty Store.
func NewWriter() *Writer {
	return &Writer{store: &Store{objects: map[ObjectRef]*Object{}}}
}

// Store returns the read side.
func (w *Writer) Store() *Store { return w.store }

// Backwards reports whether a version that the API server has sent is older than one that the store includes. A watch sends versions in
// order, so they have run backwards, as after a restore of etcd.
func (w *Writer) Backwards(version string) bool { return Older(version, w.store.Version()) }

// Apply adds a created or changed object to the store. It emits nothing if the store already has that state or a later one, because the
// states of one object are seen in order (rule 12). An object with another uid is a deletion of the old one and a creation (rule 11).
func (w *Writer) Apply(o *Object, emit func(Event)) {
	// Only the Writer changes the map, so it can read it without the lock.
	old := w.store.objects[o.ref]
	if old != nil && (old.Same(o) || Older(o.resourceVersion, old.resourceVersion)) {
		return
	}
	w.put(old, o, o.resourceVersion)
	emitChange(Applied, old, o, emit)
}

// Delete removes an object from the store; final is its last state. It emits nothing if the store does not have the object, or if the
// deletion is late and the object has been created again.
func (w *Writer) Delete(final *Object, emit func(Event)) {
	old := w.store.objects[final.ref]
	late := old != nil && old.uid != final.uid && Older(final.resourceVersion, old.resourceVersion)
	if old == nil || late {
		return
	}
	w.put(old, nil, final.resourceVersion)
	emit(Event{Type: Deleted, Old: old, New: final})
}

// Advance records that the store includes version, as reported by a bookmark.
func (w *Writer) Advance(version string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.reached(version)
	w.store.wake()
}

// Replace makes list the content of the store, in one step for its readers; version is that of the list. It emits only the differences:
// Deleted for missing objects, Relisted for new or changed ones, nothing for one with the same uid and resourceVersion, and both for one
// with another uid (rule 11). If two objects have the same reference, the later one counts. Contents are compared, because the same
// version may be another state after a restore of etcd, unless the list has the stored object itself.
//
// During the call there are two maps, but only of pointers (about 50 bytes per object), and an unchanged object keeps its identity. In
// return, the lock is held only for an assignment, whatever the length of the list, and a store that has shrunk frees its memory.
func (w *Writer) Replace(list []*Object, version string, emit func(Event)) {
	old := w.store.objects
	next, bytes := merge(old, list)
	w.Account.enter(maps.Values(next))
	w.swap(next, bytes, version)
	w.Account.leave(maps.Values(old))
	for ref, o := range old {
		if next[ref] == nil {
			emit(Event{Type: Deleted, Old: o})
		}
	}
	for _, o := range list {
		if next[o.ref] == o && old[o.ref] != o {
			emitChange(Relisted, old[o.ref], o, emit)
		}
	}
}

// Close ends the charge for the objects of the store, which can still be read. The Writer must not be used afterwards.
func (w *Writer) Close() { w.Account.leave(maps.Values(w.store.objects)) }

// swap installs the next content. Its version is used even if it is older than the previous one: etcd may have been restored from a backup.
func (w *Writer) swap(next map[ObjectRef]*Object, bytes int64, version string) {
	if !atLeast(version, version) {
		version = ""
	}
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects, s.bytes, s.version, s.order, s.owned, s.indexes = next, bytes, version, nil, nil, nil
	s.wake()
}

// merge returns the map of list, with the objects of old if their state is the same, and the total length of their msgpack.
func merge(old map[ObjectRef]*Object, list []*Object) (next map[ObjectRef]*Object, bytes int64) {
	next = make(map[ObjectRef]*Object, len(list))
	for _, o := range list {
		if before := next[o.ref]; before != nil {
			bytes -= int64(before.size)
		}
		if known := old[o.ref]; known != nil && known != o && known.Same(o) && known.Equal(o) {
			o = known
		}
		next[o.ref] = o
		bytes += int64(o.size)
	}
	return next, bytes
}

// put sets an object or, if o is nil, removes the old one. The store then includes version.
func (w *Writer) put(old, o *Object, version string) {
	w.Account.replace(old, o)
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		s.bytes -= int64(old.size)
	}
	if o != nil {
		s.bytes += int64(o.size)
		s.objects[o.ref] = o
	} else {
		delete(s.objects, old.ref)
	}
	switch {
	case s.order == nil:
	case o == nil:
		s.order.remove(old.ref)
	case old == nil:
		s.order.add(o.ref)
	}
	if s.owned != nil {
		s.owned.change(old, o)
	}
	s.changeIndexes(old, o)
	s.reached(version)
	s.wake()
}

func emitChange(t EventType, old, o *Object, emit func(Event)) {
	if old != nil && old.uid != o.uid {
		emit(Event{Type: Deleted, Old: old})
		old = nil
	}
	emit(Event{Type: t, Old: old, New: o})
}
