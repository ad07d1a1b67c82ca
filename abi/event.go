package abi

// EventType says what happened to a watched object.
type EventType string

// The types of an event.
const (
	EventListed  EventType = "Listed"  // it was there when the watch started
	EventUpdated EventType = "Updated" // it was created or has changed
	EventDeleted EventType = "Deleted" // it is gone
)

// Event is the input of map and filter: one change of one watched object.
type Event struct {
	Controller string
	// Group, Version and Kind are those of the watch.
	Group, Version, Kind string
	Type                 EventType
	// Key names the object.
	Key Key
	// Old and New are the object's msgpack before and after the change; nil where
	// it was not known before, or is gone.
	Old, New []byte
}

// Settings is the input of configure.
type Settings struct {
	// Generation counts changes of the settings, from 1.
	Generation int64
	Values     map[string]string
}
