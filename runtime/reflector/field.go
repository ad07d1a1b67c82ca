package reflector

import (
	"bytes"
	"encoding/binary"
	"iter"
	"unique"
)

// What the host reads now and then, annotations and finalizers, stays in the
// msgpack and is looked up there: kept as strings it would cost every object
// memory (an annotation often repeats the whole object). Keys are sorted, so
// the way is short: apiVersion, kind, metadata, and annotations come first.

// Annotation returns the value of one of metadata.annotations and whether it is
// there. It reads the object's msgpack: about 0.3 µs for most kinds.
func (o *Object) Annotation(key string) (value string, exists bool) {
	for k, v := range o.annotations() {
		if string(k) == key {
			return string(v), true
		}
	}
	return "", false
}

// Annotations yields metadata.annotations, sorted by key.
func (o *Object) Annotations() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for k, v := range o.annotations() {
			if !yield(string(k), string(v)) {
				return
			}
		}
	}
}

// annotations yields views of the object's bytes.
func (o *Object) annotations() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if !o.annotated {
			return
		}
		c := cursor{o.metadata("annotations")}
		for range c.mapLen() {
			k := c.str()
			if v := c.str(); !yield(k, v) {
				return
			}
		}
	}
}

// Finalizers yields metadata.finalizers in their order.
func (o *Object) Finalizers() iter.Seq[string] {
	return func(yield func(string) bool) {
		for f := range o.finalizers() {
			if !yield(string(f)) {
				return
			}
		}
	}
}

// HasFinalizer reports whether name is one of metadata.finalizers.
func (o *Object) HasFinalizer(name string) bool {
	for f := range o.finalizers() {
		if string(f) == name {
			return true
		}
	}
	return false
}

func (o *Object) finalizers() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !o.finalized {
			return
		}
		c := cursor{o.metadata("finalizers")}
		for range c.arrayLen() {
			if !yield(c.str()) {
				return
			}
		}
	}
}

// MapsAlike reports whether both have the same labels, annotations and owner
// references: a mapper that goes by those requests the same objects for both.
func (o *Object) MapsAlike(p *Object) bool {
	if len(o.labels.pairs) != len(p.labels.pairs) || len(o.owners) != len(p.owners) ||
		o.annotated != p.annotated {
		return false
	}
	for i, l := range o.labels.pairs {
		if l != p.labels.pairs[i] {
			return false
		}
	}
	for i, w := range o.owners {
		if w != p.owners[i] {
			return false
		}
	}
	return !o.annotated || bytes.Equal(o.metadata("annotations"), p.metadata("annotations"))
}

// APIVersion returns the object's apiVersion, "apps/v1", or "".
func (o *Object) APIVersion() string { return o.typeField("apiVersion") }

// Kind returns the object's kind, or "".
func (o *Object) Kind() string { return o.typeField("kind") }

// typeField returns a top-level string. There are few different ones.
func (o *Object) typeField(name string) string {
	c := cursor{cursor{o.msgpack}.find(name)}
	if s := c.str(); len(s) > 0 {
		return unique.Make(string(s)).Value()
	}
	return ""
}

// metadata returns the msgpack of one field of metadata, or nil.
func (o *Object) metadata(name string) []byte {
	return cursor{cursor{o.msgpack}.find("metadata")}.find(name)
}

// cursor reads msgpack that abi.AppendValue wrote, front to back. Of a value
// that is not of the kind that is asked for, there is nothing to read.
type cursor struct{ b []byte }

// find returns the value of a key of the map at the cursor, or nil. Keys are
// sorted.
func (c cursor) find(key string) []byte {
	for range c.mapLen() {
		k := c.str()
		switch {
		case string(k) > key:
			return nil
		case string(k) == key:
			return c.value()
		}
		c.skip()
	}
	return nil
}

func (c *cursor) mapLen() int   { return c.length(0x80, 0x0f, 0xde) }
func (c *cursor) arrayLen() int { return c.length(0x90, 0x0f, 0xdc) }

// length reads the head of a map or an array: one byte with the length in its
// low bits, or wide and 16 bits, or the code after wide and 32 bits.
func (c *cursor) length(fixed, mask, wide byte) int {
	if len(c.b) == 0 {
		return 0
	}
	switch h := c.b[0]; {
	case h&^mask == fixed:
		c.b = c.b[1:]
		return int(h & mask)
	case h == wide:
		return c.number(2)
	case h == wide+1:
		return c.number(4)
	}
	return 0
}

// number reads the number of size bytes that follows the byte at the cursor.
func (c *cursor) number(size int) (n int) {
	switch b := c.b[1:]; size {
	case 1:
		n = int(b[0])
	case 2:
		n = int(binary.BigEndian.Uint16(b))
	default:
		n = int(binary.BigEndian.Uint32(b))
	}
	c.b = c.b[1+size:]
	return n
}

// str reads a string, as a view.
func (c *cursor) str() []byte {
	if len(c.b) == 0 {
		return nil
	}
	var n int
	switch h := c.b[0]; {
	case h&0xe0 == 0xa0:
		n = int(h & 0x1f)
		c.b = c.b[1:]
	case h >= 0xd9 && h <= 0xdb:
		n = c.number(1 << (h - 0xd9))
	default:
		c.skip()
		return nil
	}
	s := c.b[:n]
	c.b = c.b[n:]
	return s
}

// value passes over one value and returns it, as a view.
func (c *cursor) value() []byte {
	from := c.b
	c.skip()
	return from[:len(from)-len(c.b)]
}

// skip passes over one value.
func (c *cursor) skip() {
	for n := 1; n > 0; n-- {
		switch h := c.b[0]; {
		case h&0xe0 == 0xa0, h >= 0xd9 && h <= 0xdb:
			c.str()
		case h&0xf0 == 0x80, h == 0xde, h == 0xdf:
			n += 2 * c.mapLen()
		case h&0xf0 == 0x90, h == 0xdc, h == 0xdd:
			n += c.arrayLen()
		case h >= 0xcc && h <= 0xcf: // uint8 to uint64
			c.b = c.b[1+1<<(h-0xcc):]
		case h >= 0xd0 && h <= 0xd3: // int8 to int64
			c.b = c.b[1+1<<(h-0xd0):]
		case h == 0xcb: // float64
			c.b = c.b[9:]
		default: // a small integer, nil, true or false
			c.b = c.b[1:]
		}
	}
}
