// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"encoding/json"

	"github.com/wasmctl/wasmctl/abi"
)

// Fields are the fields of a kind that contain opaque JSON, by key. The elements of a list have the fields of the list. A field without
// fields of its own is opaque JSON itself.
type Fields map[string]Fields

// field appends the value of a key. within are the fields of the map.
func (t *Transcoder) field(within Fields, key []byte, depth int) bool {
	fields, listed := within[string(key)]
	if listed && len(fields) == 0 {
		return t.opaque()
	}
	t.fields = fields
	ok := t.value(depth)
	t.fields = within
	return ok
}

// opaque appends the next value as opaque JSON. Null remains nil.
func (t *Transcoder) opaque() bool {
	if t.next() == 'n' {
		return t.word("null", 0xc0)
	}
	js := t.js[t.pos : t.pos+valueEnd(t.js[t.pos:])]
	t.pos += len(js)
	t.out = abi.AppendOpaque(t.out, js)
	return json.Valid(js)
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
