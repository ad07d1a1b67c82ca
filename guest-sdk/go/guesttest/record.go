// SPDX-License-Identifier: Apache-2.0

package guesttest

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// maxNote is the size, in bytes, to which a note is truncated (abi/ABI.md,
// section 6).
const maxNote = 1024

// record implements event_record.
func (h *Host) record(m map[string]any) (any, *failure) {
	e := wasmctl.Event{
		Type: wasmctl.EventType(str(m, "type")), Reason: str(m, "reason"), Action: str(m, "action"), Note: str(m, "note"),
		Regarding: eventObject(m["regarding"]), Related: eventObject(m["related"]),
	}
	if e.Type == "" {
		e.Type = wasmctl.EventNormal
	}
	switch {
	case e.Type != wasmctl.EventNormal && e.Type != wasmctl.EventWarning:
		return nil, badRequest("type of an event is Normal or Warning, not " + string(e.Type))
	case e.Reason == "" || len(e.Reason) > 128:
		return nil, badRequest("reason of an event is needed, a word of at most 128 bytes")
	case e.Regarding == nil && h.running == nil:
		return nil, badRequest("regarding is needed if no object is reconciled")
	}
	if e.Regarding == nil {
		e.Regarding = h.running
	}
	r := &request{id: id{group: "events.k8s.io"}, ref: wasmctl.ObjectRef{Kind: "Event", Namespace: e.Regarding.Namespace}}
	for _, r.op = range []string{"api_create", "api_patch"} {
		if fail := h.allowed(r); fail != nil {
			return nil, fail
		}
	}
	e.Note = e.Note[:min(len(e.Note), maxNote)]
	h.events = append(h.events, e)
	return nil, nil
}

func eventObject(v any) *wasmctl.EventObject {
	if str(v, "kind") == "" {
		return nil
	}
	return &wasmctl.EventObject{
		ObjectRef: wasmctl.ObjectRef{
			APIVersion: str(v, "apiVersion"), Kind: str(v, "kind"), Namespace: str(v, "namespace"), Name: str(v, "name"),
		},
		UID: str(v, "uid"),
	}
}
