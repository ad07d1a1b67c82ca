// SPDX-License-Identifier: Apache-2.0

package protobuf

import "github.com/wasmctl/wasmctl/internal/transcode"

// Opaque returns the fields of the kind that contain opaque JSON, or nil if it has none.
func (m *Message) Opaque() transcode.Fields { return m.opaque }

// opaqueFields returns the opaque fields of a message. path has the messages that contain it: a type that contains itself ends there.
func (m *Message) opaqueFields(path map[*Message]bool) transcode.Fields {
	if m == nil || path[m] {
		return nil
	}
	path[m] = true
	defer delete(path, m)
	var found transcode.Fields
	for i := range m.entries {
		v := m.entries[i].value
		if v.form == asList {
			v = v.elem
		}
		inner := v.fields.opaqueFields(path)
		if v.form != asOpaque && inner == nil {
			continue
		}
		if found == nil {
			found = transcode.Fields{}
		}
		found[m.entries[i].name] = inner
	}
	return found
}
