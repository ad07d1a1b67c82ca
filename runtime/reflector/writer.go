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
// store has already emits nothing; an object of another uid is a deletion of
// the old one and a creation (rule 11).
func (w *Writer) Apply(o *Object, emit func(Event)) {
	// The Writer is the only one that changes the map, so it reads without lock.
	old := w.store.objects[o.ref]
	if old != nil && old.Same(o) {
		return
	}
	w.put(o.ref, old, o)
	emitChange(Applied, old, o, emit)
}

// Delete takes an object out of the store; final is its last state. An object
// that the store does not have emits nothing.
func (w *Writer) Delete(final *Object, emit func(Event)) {
	old := w.store.objects[final.ref]
	if old == nil {
		return
	}
	w.put(final.ref, old, nil)
	emit(Event{Type: Deleted, Old: old, New: final})
}

// Replace makes list the content of the store, in one step for its readers, and
// emits only the differences: Deleted for what is missing, Relisted for what is
// new or changed, nothing for an object of the same uid and resourceVersion,
// and both for one of another uid (rule 11). Of two objects with the same ref
// the later counts.
//
// Meanwhile there are two maps, but only of pointers (about 50 bytes an
// object), and an unchanged object stays the one that readers hold. In return
// the lock is held for an assignment, whatever the length of the list, and a
// store that has shrunk gives its memory back.
func (w *Writer) Replace(list []*Object, emit func(Event)) {
	old := w.store.objects
	next, bytes := merge(old, list)
	w.store.mu.Lock()
	w.store.objects, w.store.bytes = next, bytes
	w.store.mu.Unlock()

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

// merge returns the map of list, with the objects of old where they are the
// same state, and the length of their msgpack.
func merge(old map[ObjectRef]*Object, list []*Object) (next map[ObjectRef]*Object, bytes int64) {
	next = make(map[ObjectRef]*Object, len(list))
	for _, o := range list {
		if before := next[o.ref]; before != nil {
			bytes -= int64(len(before.msgpack))
		}
		if known := old[o.ref]; known != nil && known.Same(o) {
			o = known
		}
		next[o.ref] = o
		bytes += int64(len(o.msgpack))
	}
	return next, bytes
}

// put sets or, where o is nil, removes one object.
func (w *Writer) put(ref ObjectRef, old, o *Object) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if old != nil {
		w.store.bytes -= int64(len(old.msgpack))
	}
	if o == nil {
		delete(w.store.objects, ref)
		return
	}
	w.store.objects[ref] = o
	w.store.bytes += int64(len(o.msgpack))
}

func emitChange(t EventType, old, o *Object, emit func(Event)) {
	if old != nil && old.uid != o.uid {
		emit(Event{Type: Deleted, Old: old})
		old = nil
	}
	emit(Event{Type: t, Old: old, New: o})
}
