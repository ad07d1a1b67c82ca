// SPDX-License-Identifier: Apache-2.0

// Package packed reads objects in the format of abi.AppendValue sequentially, as slices of their bytes: it decodes and allocates nothing.
package packed

// Form is the type of a value.
type Form uint8

// The forms.
const (
	Scalar Form = iota // nil, a bool or a number
	Text
	Opaque // JSON as text
	Array
	Map
)

// head describes the beginning of a value: its form, its number of elements or bytes of text, and their offset, which for a scalar is its
// end. begin is 0 if there is no valid value.
type head struct {
	form   Form
	digits uint8 // number of bytes that encode n
	begin  int32
	n      int
}

// heads maps the first byte of a value to its head. Binary values and extensions of a fixed length, which never occur in objects, are
// invalid.
var heads = func() (t [256]head) {
	for c := range t {
		switch {
		case c <= 0x7f, c >= 0xe0:
			t[c] = head{begin: 1}
		case c <= 0x8f:
			t[c] = head{form: Map, begin: 1, n: c & 0x0f}
		case c <= 0x9f:
			t[c] = head{form: Array, begin: 1, n: c & 0x0f}
		case c <= 0xbf:
			t[c] = head{form: Text, begin: 1, n: c & 0x1f}
		}
	}
	for c, size := range map[byte]int32{0xc0: 1, 0xc2: 1, 0xc3: 1, 0xca: 5, 0xcb: 9, 0xcc: 2, 0xcd: 3, 0xce: 5, 0xcf: 9, 0xd0: 2, 0xd1: 3, 0xd2: 5, 0xd3: 9} {
		t[c].begin = size
	}
	for c, h := range map[byte]head{0xd9: {Text, 1, 2, 0}, 0xda: {Text, 2, 3, 0}, 0xdb: {Text, 4, 5, 0}, 0xdc: {Array, 2, 3, 0}, 0xdd: {Array, 4, 5, 0}, 0xde: {Map, 2, 3, 0}, 0xdf: {Map, 4, 5, 0}} {
		t[c] = h
	}
	for c, h := range map[byte]head{0xc7: {Opaque, 1, 3, 0}, 0xc8: {Opaque, 2, 4, 0}, 0xc9: {Opaque, 4, 6, 0}} {
		t[c] = h
	}
	return t
}()

// headOf reads the head of the value at the beginning of b. It is invalid if b is too short: each element takes at least a byte.
func headOf(b []byte) head {
	if len(b) == 0 {
		return head{}
	}
	h := heads[b[0]]
	if h.digits > 0 && len(b) >= int(h.begin) {
		for _, digit := range b[1:h.begin] {
			h.n = h.n<<8 | int(digit)
		}
		if h.form == Opaque {
			h.n >>= 8 // the type of the extension
		}
	}
	if h.n < 0 || h.n > len(b)-int(h.begin) {
		return head{}
	}
	return h
}

// FormOf returns the form of the value at the beginning of b, or Scalar if there is none.
func FormOf(b []byte) Form { return headOf(b).form }

// IsNil reports whether a value is nil or missing.
func IsNil(b []byte) bool { return len(b) == 0 || b[0] == 0xc0 }

// Find returns the value of a key of a map, or nil. Keys are sorted.
func Find(b []byte, key string) []byte {
	c := At(b)
	for range c.MapLen() {
		switch k := c.Text(); {
		case string(k) > key:
			return nil
		case string(k) == key:
			return c.Value()
		}
		c.Skip()
	}
	return nil
}

// Cursor reads one value after the other. A value of an unexpected form is skipped. After invalid bytes, nothing is left to read.
type Cursor struct {
	rest []byte
	bad  bool
}

// At returns a Cursor at the beginning of b.
func At(b []byte) Cursor { return Cursor{rest: b} }

// OK reports whether all values had the requested form. A nil counts as an empty text, map or array.
func (c *Cursor) OK() bool { return !c.bad }

// Rest returns the unread bytes.
func (c *Cursor) Rest() []byte { return c.rest }

// MapLen reads the head of a map, and returns the number of its entries.
func (c *Cursor) MapLen() int { return c.length(Map) }

// ArrayLen reads the head of an array, and returns the number of its elements.
func (c *Cursor) ArrayLen() int { return c.length(Array) }

func (c *Cursor) length(want Form) int {
	h := headOf(c.rest)
	if h.form != want {
		c.other()
		return 0
	}
	c.rest = c.rest[h.begin:]
	return h.n
}

// Text reads a text; it returns nil if there is none.
func (c *Cursor) Text() []byte {
	if b := c.rest; len(b) > 0 && b[0]&0xe0 == 0xa0 { // the most frequent case
		if end := 1 + int(b[0]&0x1f); end <= len(b) {
			c.rest = b[end:]
			return b[1:end]
		}
	}
	h := headOf(c.rest)
	if h.form != Text {
		c.other()
		return nil
	}
	text := c.rest[h.begin:][:h.n]
	c.rest = c.rest[int(h.begin)+h.n:]
	return text
}

// other skips a value of another form.
func (c *Cursor) other() {
	c.bad = c.bad || len(c.rest) == 0 || c.rest[0] != 0xc0
	c.Skip()
}

// Value reads one value of any form; it returns nil if there is none.
func (c *Cursor) Value() []byte {
	from := c.rest
	if c.Skip(); c.rest == nil {
		return nil
	}
	return from[:len(from)-len(c.rest)]
}

// Skip skips one value.
func (c *Cursor) Skip() {
	b := c.rest
	for left := 1; left > 0; left-- {
		if len(b) > 0 && b[0]&0xe0 == 0xa0 && int(b[0]&0x1f) < len(b) { // the most frequent case
			b = b[1+int(b[0]&0x1f):]
			continue
		}
		h := headOf(b)
		if h.begin == 0 {
			c.rest, c.bad = nil, true
			return
		}
		end := int(h.begin)
		switch h.form {
		case Text, Opaque:
			end += h.n
		case Array:
			left += h.n
		case Map:
			left += 2 * h.n
		case Scalar:
		}
		b = b[end:]
	}
	c.rest = b
}
