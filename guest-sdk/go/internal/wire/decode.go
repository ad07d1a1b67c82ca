// SPDX-License-Identifier: Apache-2.0

package wire

import "strconv"

// Decode decodes a complete message into the Go types of JSON: nil, bool,
// int64, float64, string, []any and map[string]any. It refuses messages that
// Check refuses, and maps with duplicate keys.
func Decode(b []byte) (any, error) {
	if err := Check(b); err != nil {
		return nil, err
	}
	d := decoder{b: b}
	return d.any()
}

// decoder decodes one value after the other. The values are known to be
// complete, because Skip has checked them.
type decoder struct {
	b     []byte
	pos   int
	depth int    // number of maps and arrays around pos
	own   bool   // b never changes: strings may share its memory
	chunk []byte // memory for strings; see string
	json  []byte // memory for types that decode themselves from JSON

	amount quantity // the current value while a map is decoded
}

// skip advances past the value.
func (d *decoder) skip() { d.pos = Skip(d.b, d.pos) }

// shortText is text for strings with a one-byte header, which are the most
// frequent. It returns false for all other values.
func (d *decoder) shortText() ([]byte, bool) {
	c, start := d.b[d.pos], d.pos+1
	if c&0xe0 != 0xa0 {
		return nil, false
	}
	d.pos = start + int(c&0x1f)
	return d.b[start:d.pos], true
}

// text advances past the string and returns a view of it, or false if the value
// is not a string.
func (d *decoder) text() ([]byte, bool) {
	var start, n int
	switch c := d.b[d.pos]; {
	case c&0xe0 == 0xa0: // most strings are short, with a one-byte header
		start, n = d.pos+1, int(c&0x1f)
	case types[c] == String:
		start, n = d.wide(c - 0xd9)
	default:
		return nil, false
	}
	d.pos = start + n
	return d.b[start:d.pos], true
}

// open advances past the header of a map or an array and returns its number of
// entries. n is -1 if the value has another type.
func (d *decoder) open(t Type) (n int, err error) {
	c := d.b[d.pos]
	if types[c] != t {
		return -1, nil
	}
	if d.depth++; d.depth > MaxDepth {
		return 0, ErrTooDeep
	}
	if c < 0xa0 { // small, with a one-byte header
		d.pos++
		return int(c & 0x0f), nil
	}
	d.pos, n = d.wide(1 + c&1) // 0xdc and 0xde have two bytes, 0xdd and 0xdf four
	return n, nil
}

// wide reads a length of 1<<log bytes and returns the position after it.
func (d *decoder) wide(log byte) (next, n int) {
	next = d.pos + 1 + 1<<log
	for _, b := range d.b[d.pos+1 : next] {
		n = n<<8 | int(b)
	}
	return next, n
}

// any decodes the value.
func (d *decoder) any() (any, error) {
	v := d.b[d.pos:]
	switch TypeOf(v) {
	case Array:
		return d.anyArray()
	case Map:
		return d.anyMap()
	case String:
		s, _ := d.text()
		return d.string(s), nil
	case Opaque:
		inner, err := d.plain()
		if err != nil {
			return nil, err
		}
		return inner.any()
	default:
		d.skip()
		return scalar(v)
	}
}

func scalar(v []byte) (any, error) {
	switch TypeOf(v) {
	case Nil:
		return nil, nil
	case Bool:
		b, _ := ReadBool(v)
		return b, nil
	case Int:
		if i, ok := readInt(v); ok {
			return i, nil
		}
		return nil, ErrNumber
	case Float:
		f, _ := ReadFloat(v)
		return f, nil
	default:
		return nil, ErrType
	}
}

func (d *decoder) anyArray() (any, error) {
	n, err := d.open(Array)
	if err != nil {
		return nil, err
	}
	list := make([]any, n) // n is safe: Skip has seen a byte for each element
	for i := range list {
		if list[i], err = d.any(); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	d.depth--
	return list, nil
}

func (d *decoder) anyMap() (any, error) {
	n, err := d.open(Map)
	if err != nil {
		return nil, err
	}
	m := make(map[string]any, n)
	for ; n > 0; n-- {
		s, ok := d.text()
		if !ok {
			return nil, ErrType
		}
		key := d.string(s)
		if _, ok := m[key]; ok {
			return nil, within(key, ErrDuplicate)
		}
		if m[key], err = d.any(); err != nil {
			return nil, within(key, err)
		}
	}
	d.depth--
	return m, nil
}

// Sizes of the memory for strings. An object has many short strings, and one
// allocation for each is a large part of the cost of decoding. A string that
// stays in use also keeps its chunk in memory.
const (
	chunkSize = 1 << 10
	chunkText = 128 // a longer string gets memory of its own

	// smallValue is the size up to which a value is copied once, and all its
	// strings share that copy. A string that stays in use keeps the copy in
	// memory.
	smallValue = 4 << 10
)

// string returns s, which is part of b, as a string; it copies s unless the
// decoder owns b.
func (d *decoder) string(s []byte) string {
	if d.own {
		return unsafeString(s)
	}
	if len(s) > chunkText || len(s) == 0 {
		return string(s)
	}
	if len(s) > len(d.chunk) {
		d.chunk = make([]byte, min(chunkSize, max(len(d.b)-d.pos, 0)+len(s)))
	}
	n := copy(d.chunk, s)
	out := unsafeString(d.chunk[:n:n])
	d.chunk = d.chunk[n:]
	return out
}
