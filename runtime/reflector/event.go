package reflector

// EventType says how a state of an object became known.
type EventType uint8

const (
	// Listed says that the object was there when the subscriber joined the watch.
	// New is set.
	Listed EventType = iota + 1
	// Relisted says that the object is new or has changed, as a later list shows
	// that was made because the watch had a gap. New is set, and Old where the
	// object was known.
	Relisted
	// Applied says that the object was created or has changed, as the watch tells
	// it. New is set, and Old where the object was known.
	Applied
	// Deleted says that the object is gone. Old is the last state that was in the store.
	// New is the final state that came with the deletion; it is nil where a list
	// or a new uid shows that the object went away unseen.
	Deleted
)

// String returns the type's name.
func (t EventType) String() string {
	return [...]string{"Unknown", "Listed", "Relisted", "Applied", "Deleted"}[t]
}

// Event is one change of a store.
type Event struct {
	Type     EventType
	Old, New *Object
}

// Ref returns the object that the event is about.
func (e Event) Ref() ObjectRef {
	if e.New != nil {
		return e.New.ref
	}
	return e.Old.ref
}
