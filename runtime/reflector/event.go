// SPDX-License-Identifier: Apache-2.0

package reflector

// EventType is how a state of an object became known.
type EventType uint8

const (
	// Listed means that the object existed when the subscriber joined the watch. New is set.
	Listed EventType = iota + 1
	// Relisted means that a later list, made because the watch had a gap, contains a new or changed object. New is set, and Old if the
	// object was known.
	Relisted
	// Applied means that the watch reported a created or changed object. New is set, and Old if the object was known.
	Applied
	// Deleted means that the object is gone. Old is the last state that was in the store. New is the final state that came with the
	// deletion; it is nil if the deletion was inferred from a list or a new uid.
	Deleted
)

// String returns the type's name.
func (t EventType) String() string {
	return [...]string{"Unknown", "Listed", "Relisted", "Applied", "Deleted"}[t]
}

// Event is a change of a store.
type Event struct {
	Type     EventType
	Old, New *Object
}

// Ref returns the reference of the object that the event is about.
func (e Event) Ref() ObjectRef {
	if e.New != nil {
		return e.New.ref
	}
	return e.Old.ref
}
