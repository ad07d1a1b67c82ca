// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// EventType is the severity of an Event.
type EventType string

// The types of an Event.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// Event is an event of an object, as `kubectl events` shows it. It is for
// people and expires after an hour; use a condition for lasting information.
// The host counts equal events instead of writing each one, and limits their
// number. So a call without an error means that the host accepted the event,
// not that it wrote the event. It needs the right
//
//	{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}}
type Event struct {
	// Type is the severity; EventNormal if empty.
	Type EventType
	// Reason is the cause: a CamelCase word of at most 128 bytes. Required.
	Reason string
	// Action is the action that was taken or failed: a CamelCase word,
	// "Reconcile" if empty.
	Action string
	// Note is for people. It has at most 1024 bytes; a longer note is
	// truncated.
	Note string
	// Regarding is the object of the event. If nil, it is the object of the
	// run.
	Regarding *EventObject
	// Related is a second object, for example a child. Optional.
	Related *EventObject
}

// EventObject names an object of an Event. UID may be empty.
type EventObject struct {
	ObjectRef
	UID string
}

// EventObject returns a reference to o for an Event.
func (o Object) EventObject() *EventObject { return &EventObject{ObjectRef: o.Ref(), UID: o.UID()} }

// Event records an event about the object of the run. If that fails, it logs
// the error, because a lost event does not justify a failed run. RecordEvent
// offers all fields.
func (c *Context) Event(typ EventType, reason, note string) {
	if err := c.RecordEvent(Event{Type: typ, Reason: reason, Note: note}); err != nil {
		c.Log().Warn("event not recorded", "reason", reason, "error", err)
	}
}

// RecordEvent records an event. The error is an *Error.
func (c *Context) RecordEvent(e Event) error {
	b := wire.NewBuilder(c.g.request[:0])
	b.String("type", string(e.Type))
	b.Text("reason", clip(e.Reason))
	b.String("action", clip(e.Action))
	b.String("note", clip(e.Note))
	e.Regarding.append(&b, "regarding")
	e.Related.append(&b, "related")
	c.g.request = b.End()
	_, err := c.g.do(&imports.EventRecord, c.g.request)
	return err
}

func (o *EventObject) append(b *wire.Builder, key string) {
	if o == nil {
		return
	}
	b.Map(key, func(m *wire.Builder) {
		appendRef(m, o.ObjectRef)
		m.String("uid", o.UID)
	})
}
