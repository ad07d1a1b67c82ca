// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"encoding/json"

	"github.com/wasmctl/wasmctl/abi"
)

// Fields are the fields of a kind that contain opaque JSON, by key. The elements of a list have the fields of the list. A field without
// fields of its own is opaque JSON itself.
type Fields map[string]Fields

// within appends the next value, which has the given fields.
func (t *Transcoder) within(fields Fields, depth int) bool {
	switch c := t.next(); {
	case len(fields) == 0:
		return t.opaque()
	case c == '[':
		return depth < maxJSONDepth && t.arrayWithin(fields, depth)
	case c == '{':
		return depth < maxJSONDepth && t.objectWithin(fields, depth)
	}
	return t.value(depth)
}

func (t *Transcoder) arrayWithin(fields Fields, depth int) bool {
	head, n := t.open(), 0
	for ; !t.skip(']'); n++ {
		if n > 0 && !t.skip(',') || !t.within(fields, depth+1) {
			return false
		}
	}
	t.close(head, n, 0x90, 0xdc)
	return true
}

func (t *Transcoder) objectWithin(fields Fields, depth int) bool {
	head, first := t.open(), len(t.entries)
	for n := 0; !t.skip('}'); n++ {
		if n > 0 && !t.skip(',') || t.next() != '"' {
			return false
		}
		e := mapEntry{start: len(t.out)}
		if !t.str() || !t.skip(':') {
			return false
		}
		e.text, e.value = e.start+headSize(t.out[e.start]), len(t.out)
		inner, listed := fields[string(t.out[e.text:e.value])]
		if listed && !t.within(inner, depth+1) || !listed && !t.value(depth+1) {
			return false
		}
		e.end = len(t.out)
		t.entries = append(t.entries, e)
	}
	if !t.sort(head+1, t.entries[first:]) {
		return false
	}
	t.close(head, len(t.entries)-first, 0x80, 0xde)
	t.entries = t.entries[:first]
	return true
}

// opaque appends the next value as opaque JSON. Null remains nil.
func (t *Transcoder) opaque() bool {
	if t.next() == 'n' {
		return t.word("null", 0xc0)
	}
	js := t.js[t.pos : t.pos+valueEnd(t.js[t.pos:])]
	t.pos += len(js)
	valid := json.Valid(js)
	if original := t.Originals[string(js)]; original != nil {
		js = original
	}
	t.out = abi.AppendOpaque(t.out, js)
	return valid
}

// valueEnd returns the end of the JSON value at the beginning of js, if it is valid.
func valueEnd(js []byte) int {
	depth := 0
	for i := 0; i < len(js); i++ {
		switch js[i] {
		case '"':
			for i++; i < len(js) && js[i] != '"'; i++ {
				if js[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(js))
		}
	}
	return len(js)
}
