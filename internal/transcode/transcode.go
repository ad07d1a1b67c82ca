// SPDX-License-Identifier: Apache-2.0

// Package transcode turns the JSON of API servers into the msgpack of package abi in one pass.
package transcode

import (
	"bytes"
	"math"
	"slices"
)

// maxJSONDepth is the maximum nesting depth of the JSON. It is less than abi.MaxDepth and more than any object has.
const maxJSONDepth = 64

// Transcoder turns the JSON of objects into msgpack, byte for byte like decoding it and calling abi.AppendValue, without building a map. It
// accepts the JSON that API servers write. It rejects everything else, whether invalid or only unusual (numbers with an exponent, halves of
// a surrogate pair, a duplicate key), which must then be decoded into a map.
//
// The zero value is ready to use. It reuses its buffers between calls, and is not safe for concurrent use.
type Transcoder struct {
	// OmitManagedFields omits metadata.managedFields.
	OmitManagedFields bool
	// Omitted is the msgpack of the metadata.managedFields that the last Append has omitted.
	Omitted []byte

	js       []byte
	pos      int
	out      []byte
	entries  []mapEntry // of the enclosing maps, the innermost last
	spare    []byte
	metadata bool // the map of depth 1 that encloses pos is the value of metadata

	// Opaque are the fields whose values become opaque JSON. If nil, there are none.
	Opaque Fields
	// Originals are texts to use as opaque JSON in place of others, by the other text.
	Originals map[string][]byte
}

// mapEntry is the location of a map entry in out: its key, the key's text, its value and its end.
type mapEntry struct{ start, text, value, end int }

// KeyBytes is the memory that a Transcoder takes for each key of a map, and of those that enclose the map.
const KeyBytes = 32

// Sized returns a Transcoder with room for this many keys, and for a map of this many bytes.
func Sized(keys, bytes int) *Transcoder {
	return &Transcoder{entries: make([]mapEntry, 0, keys), spare: make([]byte, 0, bytes)}
}

// Append appends the msgpack of js, which is one JSON object, to dst. If it returns false, the input was rejected and dst is unchanged.
func (t *Transcoder) Append(dst, js []byte) (out []byte, ok bool) {
	t.js, t.pos, t.out, t.entries, t.Omitted = js, 0, dst, t.entries[:0], t.Omitted[:0]
	ok = t.next() == '{' && t.value(0)
	if ok {
		t.next()
		ok = t.pos == len(js)
	}
	out = t.out
	t.js, t.out = nil, nil
	if !ok {
		return dst, false
	}
	return out, true
}

// next skips white space and returns the next byte, or 0 at the end.
func (t *Transcoder) next() byte {
	for ; t.pos < len(t.js); t.pos++ {
		switch c := t.js[t.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// skip skips white space and then c.
func (t *Transcoder) skip(c byte) bool {
	if t.next() != c {
		return false
	}
	t.pos++
	return true
}

func (t *Transcoder) value(depth int) bool {
	switch t.next() {
	case '{':
		return depth < maxJSONDepth && t.object(depth)
	case '[':
		return depth < maxJSONDepth && t.array(depth)
	case '"':
		return t.str()
	case 't':
		return t.word("true", 0xc3)
	case 'f':
		return t.word("false", 0xc2)
	case 'n':
		return t.word("null", 0xc0)
	}
	return t.number()
}

func (t *Transcoder) word(word string, code byte) bool {
	if !bytes.HasPrefix(t.js[t.pos:], []byte(word)) {
		return false
	}
	t.pos += len(word)
	t.out = append(t.out, code)
	return true
}

func (t *Transcoder) array(depth int) bool {
	head, n := t.open(), 0
	for ; !t.skip(']'); n++ {
		if n > 0 && !t.skip(',') || !t.value(depth+1) {
			return false
		}
	}
	t.close(head, n, 0x90, 0xdc)
	return true
}

func (t *Transcoder) object(depth int) bool {
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
		if depth == 0 && !t.topLevel(t.out[e.text:e.value]) || depth > 0 && !t.value(depth+1) {
			return false
		}
		if depth == 1 && t.metadata && t.OmitManagedFields && string(t.out[e.text:e.value]) == "managedFields" {
			t.Omitted = append(t.Omitted[:0], t.out[e.value:]...)
			t.out = t.out[:e.start]
			continue
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

// topLevel appends the value of a top-level key.
func (t *Transcoder) topLevel(key []byte) bool {
	t.metadata = string(key) == "metadata"
	if fields, listed := t.Opaque[string(key)]; listed {
		return t.within(fields, 1)
	}
	return t.value(1)
}

// headSize returns the size of the head of a string that starts with c.
func headSize(c byte) int {
	switch c {
	case 0xd9:
		return 2
	case 0xda:
		return 3
	case 0xdb:
		return 5
	}
	return 1
}

// sort orders the entries of a map, which start at start in out, by key. It returns false if a key appears twice.
func (t *Transcoder) sort(start int, entries []mapEntry) bool {
	if t.ascends(entries) {
		return true
	}
	slices.SortFunc(entries, t.compare)
	if !t.ascends(entries) {
		return false
	}
	t.spare = t.spare[:0]
	for _, e := range entries {
		t.spare = append(t.spare, t.out[e.start:e.end]...)
	}
	copy(t.out[start:], t.spare)
	return true
}

func (t *Transcoder) compare(a, b mapEntry) int {
	return bytes.Compare(t.out[a.text:a.value], t.out[b.text:b.value])
}

// ascends reports whether each key is greater than the previous one.
func (t *Transcoder) ascends(entries []mapEntry) bool {
	for i := 1; i < len(entries); i++ {
		if t.compare(entries[i-1], entries[i]) >= 0 {
			return false
		}
	}
	return true
}

// open begins an array or a map, and returns the position of its head.
func (t *Transcoder) open() (head int) {
	t.pos++
	t.out = append(t.out, 0)
	return len(t.out) - 1
}

// close writes the head of an array or a map of n elements or entries.
func (t *Transcoder) close(head, n int, fixed, wide byte) {
	switch {
	case n <= 15:
		t.out[head] = fixed | byte(n)
	case n <= math.MaxUint16:
		t.out = slices.Insert(t.out, head+1, byte(n>>8), byte(n))
		t.out[head] = wide
	default:
		t.out = slices.Insert(t.out, head+1, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		t.out[head] = wide + 1
	}
}
