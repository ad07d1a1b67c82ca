package wire

import "strconv"

// Decode decodes a whole message into the Go types of JSON: nil, bool, int64,
// float64, string, []any and map[string]any. It refuses what Check refuses,
// and maps with a key twice.
func Decode(b []byte) (any, error) {
	if err := Check(b); err != nil {
		return nil, err
	}
	d := decoder{b: b}
	return d.any()
}

// decoder reads one value after the other. What it reads is there in full: Skip
// has seen it.
type decoder struct {
	b     []byte
	pos   int
	depth int    // of the maps and arrays around pos
	own   bool   // nobody else has b: strings are parts of it
	chunk []byte // memory for strings; see string
	json  []byte // memory for types that read themselves from JSON

	amount quantity // the value of a map that is being read
}

// skip goes behind the value.
func (d *decoder) skip() { d.pos = Skip(d.b, d.pos) }

// shortText is text for a head of one byte, as most strings have; false if there is
// something else.
func (d *decoder) shortText() ([]byte, bool) {
	c, start := d.b[d.pos], d.pos+1
	if c&0xe0 != 0xa0 {
		return nil, false
	}
	d.pos = start + int(c&0x1f)
	return d.b[start:d.pos], true
}

// text goes behind the string and returns a view of it; false if there is none.
func (d *decoder) text() ([]byte, bool) {
	var start, n int
	switch c := d.b[d.pos]; {
	case c&0xe0 == 0xa0: // most strings are short: their head is one byte
		start, n = d.pos+1, int(c&0x1f)
	case types[c] == String:
		start, n = d.wide(c - 0xd9)
	default:
		return nil, false
	}
	d.pos = start + n
	return d.b[start:d.pos], true
}

// open goes behind the head of a map or an array, whose n entries follow. n is -1
// if there is a value of another type.
func (d *decoder) open(t Type) (n int, err error) {
	c := d.b[d.pos]
	if types[c] != t {
		return -1, nil
	}
	if d.depth++; d.depth > MaxDepth {
		return 0, ErrTooDeep
	}
	if c < 0xa0 { // a small one: its head is one byte
		d.pos++
		return int(c & 0x0f), nil
	}
	d.pos, n = d.wide(1 + c&1) // 0xdc and 0xde have two bytes, 0xdd and 0xdf four
	return n, nil
}

// wide reads a length of 1<<log bytes and returns the position behind it.
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
	list := make([]any, n) // each element has a byte: Skip has seen them all
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

// Sizes of the memory for strings: an object has many short ones, and one
// allocation for each is a large part of the cost of decoding it. A string that
// is kept keeps its chunk.
const (
	chunkSize = 1 << 10
	chunkText = 128 // a longer string has memory of its own

	// smallValue is how long a value is, at most, whose strings are all parts of one
	// copy of it: a string that is kept keeps that.
	smallValue = 4 << 10
)

// string returns a copy of s, which is part of b.
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
