// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// differ is a patch that is the difference from another state. A call sends the
// difference directly, because a conversion to the JSON of Data would take
// longer than the rest of a small run.
type differ interface {
	diff(obj Object) (any, error)
}

// text returns the JSON of a difference.
func text(d differ, obj Object) ([]byte, error) {
	diff, err := d.diff(obj)
	if v, ok := diff.(wasmctl.Value); ok { // decode to a map, because its keys are sorted in JSON
		var m map[string]any
		err, diff = v.Decode(&m), &m
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(diff)
}

// mergeDiff returns the merge patch (RFC 7386) that turns the map from into to.
func mergeDiff(from, to wasmctl.Value) map[string]any {
	diff := map[string]any{}
	if equal(from.Raw(), to.Raw()) {
		return diff
	}
	kept := 0
	for key, now := range to.Entries() {
		was := from.At(key)
		if was.Type() != wasmctl.TypeAbsent {
			kept++
		}
		switch {
		case same(was, now):
		case was.Type() == wasmctl.TypeMap && now.Type() == wasmctl.TypeMap:
			if inner := mergeDiff(was, now); len(inner) > 0 {
				diff[key] = inner
			}
		default:
			diff[key] = now
		}
	}
	if kept == from.Len() {
		return diff
	}
	for key := range from.Entries() {
		if to.Type(key) == wasmctl.TypeAbsent {
			diff[key] = nil
		}
	}
	return diff
}

// same reports whether two values, which are not maps, have the same JSON.
// Equal bytes are a shortcut; a number has more than one encoding.
func same(a, b wasmctl.Value) bool {
	switch {
	case a.Type() == wasmctl.TypeAbsent || b.Type() == wasmctl.TypeAbsent:
		return a.Type() == b.Type()
	case equal(a.Raw(), b.Raw()):
		return true
	case a.Type() == wasmctl.TypeMap || a.Type() == wasmctl.TypeString:
		return false
	}
	was, err1 := a.MarshalJSON()
	now, err2 := b.MarshalJSON()
	return err1 == nil && err2 == nil && bytes.Equal(was, now)
}

// equal is bytes.Equal, which the standard toolchain compiles to a loop over
// single bytes in a module.
func equal(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for ; len(a) >= 8; a, b = a[8:], b[8:] {
		if binary.LittleEndian.Uint64(a) != binary.LittleEndian.Uint64(b) {
			return false
		}
	}
	return bytes.Equal(a, b)
}
