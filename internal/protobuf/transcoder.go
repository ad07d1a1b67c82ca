// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// maxDepth is the maximum nesting depth of messages. It is less than abi.MaxDepth and more than any kind has.
const maxDepth = 48

// Transcoder turns objects in protobuf into msgpack, byte for byte as a transcode.Transcoder does for their JSON. It rejects unknown or
// unusual input: fields of a later version of Kubernetes, or text that is not UTF-8.
//
// The zero value is ready to use. It reuses its buffers between calls, and is not safe for concurrent use.
type Transcoder struct {
	// OmitManagedFields omits metadata.managedFields.
	OmitManagedFields bool
	// Omitted is the msgpack of the metadata.managedFields that the last Append has omitted, if an entry is that of an apply.
	Omitted []byte

	json  transcode.Transcoder
	out   []byte
	found []found // of the enclosing messages, the innermost last
	pairs []pair  // of the enclosing maps, the innermost last
}

// found is the content of a message for one entry.
type found struct {
	count int
	num   uint64 // for a number
	b     []byte // the value; for a repeated field, the message from the first value on
}

// pair is an entry of a map.
type pair struct {
	key   []byte
	value found
}

// Append appends the msgpack of an object of kind m to dst. If it returns false, the input was rejected and dst is unchanged.
func (t *Transcoder) Append(dst []byte, m *Message, apiVersion, kind string, object []byte) (out []byte, ok bool) {
	t.out, t.found, t.pairs, t.Omitted = dst, t.found[:0], t.pairs[:0], t.Omitted[:0]
	ok = t.message(m, object, 0, apiVersion, kind)
	out, t.out = t.out, nil
	clear(t.found[:cap(t.found)]) // they point into object
	clear(t.pairs[:cap(t.pairs)])
	if !ok {
		return dst, false
	}
	return out, true
}

// message writes a message as a map. types are the apiVersion and kind of a root object.
func (t *Transcoder) message(m *Message, b []byte, depth int, types ...string) bool {
	if depth > maxDepth {
		return false
	}
	base := len(t.found)
	t.found = slices.Grow(t.found, len(m.entries))[:base+len(m.entries)]
	clear(t.found[base:])
	if !t.scan(m, base, m.numbers, b) {
		return false
	}
	if len(types) > 0 {
		t.setTypes(m, base, types)
	}
	if m.managed >= 0 && depth == 1 && t.OmitManagedFields && !t.omit(&m.entries[m.managed], base+m.managed) {
		return false
	}
	n := 0
	for i := range m.entries {
		if m.entries[i].written(&t.found[base+i]) {
			n++
		}
	}
	t.out = abi.AppendMapHead(t.out, n)
	for i := range m.entries {
		e, f := &m.entries[i], t.found[base+i]
		if !e.written(&f) {
			continue
		}
		t.out = append(t.out, e.key...)
		if !t.entry(e, &f, depth+1) {
			return false
		}
	}
	t.found = t.found[:base]
	return true
}

// applied is the operation of an apply in an entry of managedFields.
var applied = []byte("\x12\x05Apply")

// omit takes the managedFields out of the message that is being written.
func (t *Transcoder) omit(e *entry, at int) bool {
	f := t.found[at]
	t.found[at] = found{}
	if !bytes.Contains(f.b, applied) {
		return true
	}
	from := len(t.out)
	ok := t.entry(e, &f, 2)
	t.Omitted = append(t.Omitted, t.out[from:]...)
	t.out = t.out[:from]
	return ok
}

// setTypes sets apiVersion and kind.
func (t *Transcoder) setTypes(m *Message, base int, types []string) {
	for i := range m.entries {
		if m.entries[i].number == 0 {
			t.found[base+i] = found{count: 1, b: []byte(types[0])}
			types = types[1:]
		}
	}
}

// scan locates the values of the entries in a message.
func (t *Transcoder) scan(m *Message, base int, numbers []number, b []byte) bool {
	for len(b) > 0 {
		num, wire, size := protowire.ConsumeTag(b)
		if size < 0 || int(num) >= len(numbers) || !numbers[num].known {
			return false
		}
		to, rest := &numbers[num], b[size:]
		n := -1
		if to.isInline {
			var inner []byte
			if inner, n = protowire.ConsumeBytes(rest); wire != protowire.BytesType || n < 0 || !t.scan(m, base, to.inline, inner) {
				return false
			}
		} else if e, f := &m.entries[to.entry], &t.found[base+to.entry]; wire == e.wire() {
			switch {
			case !e.list && !e.mapped:
				if f.count == 0 {
					n = f.read(wire, rest)
				}
			default:
				if f.count == 0 {
					f.b = b
				}
				n = protowire.ConsumeFieldValue(num, wire, rest)
			}
			f.count++
		}
		if n < 0 {
			return false
		}
		b = rest[n:]
	}
	return true
}

// read reads one value, and returns its size, or a negative number if there is none.
func (f *found) read(wire protowire.Type, b []byte) (n int) {
	switch wire {
	case protowire.VarintType:
		f.num, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		f.num, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		f.b, n = protowire.ConsumeBytes(b)
	default:
		n = -1
	}
	return n
}

// written reports whether the JSON would contain the entry.
func (e *entry) written(f *found) bool {
	isZero := f.count == 0
	switch {
	case e.pointer || e.list || e.mapped:
	case e.form == asMap:
		return true // omitempty never omits a struct
	case e.form == asTime || e.form == asMicroTime:
		return !e.omitZero || len(f.b) > 0
	case e.form >= asDuration && e.form <= asOpaque:
		return true
	default:
		isZero = len(f.b) == 0 && f.num == 0
	}
	return !isZero || !e.omitEmpty && !e.omitZero
}

// entry writes the value of an entry.
func (t *Transcoder) entry(e *entry, f *found, depth int) bool {
	switch {
	case f.count == 0 && (e.pointer || e.list || e.mapped || e.form == asBase64 || e.form == asList):
		t.out = append(t.out, 0xc0)
		return true
	case e.list:
		return t.list(e.value, e.number, f.count, f.b, depth)
	case e.mapped:
		return t.pairsOf(e, f, depth)
	}
	return t.value(e.value, f, depth)
}

// list writes the values of a repeated field; b starts with the first one.
func (t *Transcoder) list(v *value, number protowire.Number, n int, b []byte, depth int) bool {
	t.out = abi.AppendArrayHead(t.out, n)
	for range n {
		f, rest, ok := next(number, b)
		if !ok || !t.value(v, &f, depth) {
			return false
		}
		b = rest
	}
	return true
}

// next returns the next value of a field, and the bytes after it, or false if there is none.
func next(number protowire.Number, b []byte) (f found, rest []byte, ok bool) {
	for {
		num, wire, size := protowire.ConsumeTag(b)
		if size < 0 {
			return f, nil, false
		}
		b = b[size:]
		if num == number {
			size = f.read(wire, b)
			return f, b[max(size, 0):], size >= 0
		}
		if size = protowire.ConsumeFieldValue(num, wire, b); size < 0 {
			return f, nil, false
		}
		b = b[size:]
	}
}

// pairsOf writes a map, whose entries are messages of a key and a value.
func (t *Transcoder) pairsOf(e *entry, f *found, depth int) bool {
	base, b := len(t.pairs), f.b
	for range f.count {
		message, rest, ok := next(e.number, b)
		if !ok {
			return false
		}
		p, ok := readPair(e.value, message.b)
		if !ok {
			return false
		}
		t.pairs, b = append(t.pairs, p), rest
	}
	list := t.pairs[base:]
	slices.SortFunc(list, func(x, y pair) int { return bytes.Compare(x.key, y.key) })
	t.out = abi.AppendMapHead(t.out, len(list))
	for i := range list {
		p := list[i] // a copy, because writing the values may grow t.pairs
		if i > 0 && bytes.Equal(p.key, list[i-1].key) || !t.text(p.key) || !t.value(e.value, &p.value, depth) {
			return false
		}
	}
	t.pairs = t.pairs[:base]
	return true
}

func readPair(v *value, b []byte) (p pair, ok bool) {
	for len(b) > 0 {
		num, wire, size := protowire.ConsumeTag(b)
		if size < 0 {
			return p, false
		}
		b = b[size:]
		var f found
		if size = f.read(wire, b); size < 0 {
			return p, false
		}
		switch {
		case num == 1 && wire == protowire.BytesType:
			p.key = f.b
		case num == 2 && wire == v.wire():
			p.value = f
		default:
			return p, false
		}
		b = b[size:]
	}
	return p, true
}
