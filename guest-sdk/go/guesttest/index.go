// SPDX-License-Identifier: Apache-2.0

package guesttest

import "slices"

// indexes has the entries that the module has reported, by index name.
type indexes map[string]map[id]told

// told is an index entry for one version of an object.
type told struct {
	version string
	values  []any
}

// learn stores the entries that a list request reports.
func (x indexes) learn(r *request) {
	name := str(r.msg, "index")
	entries, _ := r.msg["entries"].([]any)
	if x[name] == nil {
		x[name] = map[id]told{}
	}
	for _, e := range entries {
		at := id{group: r.id.group, kind: r.id.kind, namespace: str(e, "namespace"), name: str(e, "name")}
		m, _ := e.(map[string]any)
		values, _ := m["values"].([]any)
		x[name][at] = told{str(e, "uid") + "/" + str(e, "resourceVersion"), values}
	}
}

// leavesOut reports whether the index knows that an object lacks the requested
// value.
func (x indexes) leavesOut(r *request, at id, obj map[string]any) bool {
	known, ok := x[str(r.msg, "index")][at]
	return ok && known.version == str(obj, "metadata", "uid")+"/"+str(obj, "metadata", "resourceVersion") &&
		!slices.Contains(known.values, any(str(r.msg, "value")))
}
