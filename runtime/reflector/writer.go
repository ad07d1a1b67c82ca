package reflector

// Writer is the one write side of a Store. It is owned by one goroutine.
//
// Its methods call emit for each Event after the store has changed, with no
// lock held. A reader may therefore see a state before its event.
type Writer struct {
	store *Store
}

// NewWriter returns the Writer of a new, empty Store.
func NewWriter() *Writer {
	return &Writer{store: &Store{objects: map[ObjectRef]*Object{}}}
}

// Store returns the read side.
func (w *Writer) Store() *Store { return w.store }

// Apply puts a created or changed object into the store. The state that the
// store has already emits nothing, nor does one that is older: states of one
// object are seen in order (rule 12). An object of another uid is a deletion of
// the old one and a creation (rule 11).
func (w *Writer) Apply(o *Object, emit func(Event)) {
	// The Writer is the only one that changes the map, so it reads without lock.
	old := w.store.objects[o.ref]
	if old != nil && (old.Same(o) || Older(o.resourceVersion, old.resourceVersion)) {
		return
	}
	w.put(old, o, o.resourceVersion)
	emitChange(Applied, old, o, emit)
}

// Delete takes an object out of the store; final is its last state. An object
// that the store does not have emits nothing, nor does the late deletion of one
// that has been created again.
func (w *Writer) Delete(final *Object, emit func(Event)) {
	old := w.store.objects[final.ref]
	late := old != nil && old.uid != final.uid && Older(final.resourceVersion, old.resourceVersion)
	if old == nil || late {
		return
	}
	w.put(old, nil, final.resourceVersion)
	emit(Event{Type: Deleted, Old: old, New: final})
}

// Advance notes that the store includes version, as a bookmark says.
func (w *Writer) Advance(version string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.reached(version)
	w.store.wake()
}

// Replace makes list, which the API server gave with version, the content of the
// store, in one step for its readers, and emits only the differences: Deleted
// for what is missing, Relisted for what is new or changed, nothing for an
// object of the same uid and resourceVersion, and both for one of another uid
// (rule 11). Of two objects with the same ref the later counts.
//
// Meanwhile there are two maps, but only of pointers (about 50 bytes an
// object), and an unchanged object stays the one that readers hold. In return
// the lock is held for an assignment, whatever the length of the list, and a
// store that has shrunk gives its memory back.
func (w *Writer) Replace(list []*Object, version string, emit func(Event)) {
	old := w.store.objects
	next, bytes := merge(old, list)
	w.swap(next, bytes, version)
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

// swap puts the next content in place. Its version counts even where it is
// older than the one before: etcd may have been restored from a backup.
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

// merge returns the map of list, with the objects of old where they are the
// same state, and the length of their msgpack.
func merge(old map[ObjectRef]*Object, list []*Object) (next map[ObjectRef]*Object, bytes int64) {
	next = make(map[ObjectRef]*Object, len(list))
	for _, o := range list {
		if before := next[o.ref]; before != nil {
			bytes -= int64(before.size)
		}
		if known := old[o.ref]; known != nil && known.Same(o) {
			o = known
		}
		next[o.ref] = o
		bytes += int64(o.size)
	}
	return next, bytes
}

// put sets an object or, where o is nil, removes the old one. The store then
// includes version.
func (w *Writer) put(old, o *Object, version string) {
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
