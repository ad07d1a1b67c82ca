package kubeapi

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
)

// maxDirectDepth is how deep the JSON that transcodeDirect takes may nest. It
// is less than abi.MaxDepth and more than any object has.
const maxDirectDepth = 64

// transcodeDirect turns the JSON of one object into msgpack, byte for byte what
// decoding it and abi.AppendValue make of it, without building a map of it. It
// takes what API servers write. Anything else, be it wrong or only unusual,
// it does not take: false says to go by way of the map, which knows what to do.
func transcodeDirect(js []byte) (body []byte, ok bool) {
	t := transcoder{js: js, out: make([]byte, 0, len(js)), entries: make([]mapEntry, 0, 32)}
	if t.next() != '{' || !t.value(0) {
		return nil, false
	}
	if t.next(); t.pos < len(t.js) {
		return nil, false
	}
	return t.out, true
}

// transcoder reads js from pos on and appends to out. Its methods return false
// for what they do not take; nothing of the transcoder is of use then.
type transcoder struct {
	js      []byte
	pos     int
	out     []byte
	entries []mapEntry // of the maps around pos, the innermost last
	spare   []byte
}

// mapEntry is where an entry of a map lies in out: the key, its text, the value
// and what follows that.
type mapEntry struct{ start, text, value, end int }

// next skips white space and returns the byte there, 0 at the end.
func (t *transcoder) next() byte {
	for ; t.pos < len(t.js); t.pos++ {
		switch c := t.js[t.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// skip skips c, after white space.
func (t *transcoder) skip(c byte) bool {
	if t.next() != c {
		return false
	}
	t.pos++
	return true
}

func (t *transcoder) value(depth int) bool {
	switch t.next() {
	case '{':
		return depth < maxDirectDepth && t.object(depth)
	case '[':
		return depth < maxDirectDepth && t.array(depth)
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

func (t *transcoder) word(word string, code byte) bool {
	if !bytes.HasPrefix(t.js[t.pos:], []byte(word)) {
		return false
	}
	t.pos += len(word)
	t.out = append(t.out, code)
	return true
}

func (t *transcoder) array(depth int) bool {
	head, n := t.open(), 0
	for ; !t.skip(']'); n++ {
		if n > 0 && !t.skip(',') || !t.value(depth+1) {
			return false
		}
	}
	t.close(head, n, 0x90, 0xdc)
	return true
}

func (t *transcoder) object(depth int) bool {
	head, first := t.open(), len(t.entries)
	for !t.skip('}') {
		if len(t.entries) > first && !t.skip(',') {
			return false
		}
		e := mapEntry{start: len(t.out)}
		if t.next() != '"' || !t.str() || !t.skip(':') {
			return false
		}
		e.value = len(t.out)
		e.text = e.start + headSize(t.out[e.start])
		if !t.value(depth + 1) {
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

// headSize is the size of the head of a string that starts with c.
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

// sort puts the entries of a map, which lie in out from start on, in the order
// of their keys; false if a key is there twice.
func (t *transcoder) sort(start int, entries []mapEntry) bool {
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

func (t *transcoder) compare(a, b mapEntry) int {
	return bytes.Compare(t.out[a.text:a.value], t.out[b.text:b.value])
}

// ascends reports whether each key is greater than the one before.
func (t *transcoder) ascends(entries []mapEntry) bool {
	for i := 1; i < len(entries); i++ {
		if t.compare(entries[i-1], entries[i]) >= 0 {
			return false
		}
	}
	return true
}

// open starts an array or a map, whose head is to be written at the place that
// it returns.
func (t *transcoder) open() (head int) {
	t.pos++
	t.out = append(t.out, 0)
	return len(t.out) - 1
}

// close writes the head of an array or a map of n elements or entries.
func (t *transcoder) close(head, n int, fixed, wide byte) {
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

// number appends an integer, or a float where it has a fraction, an exponent
// or too many digits.
func (t *transcoder) number() bool {
	start := t.pos
	if t.at('-') {
		t.pos++
	}
	zero := t.at('0')
	if n := t.digits(); n == 0 || zero && n > 1 {
		return false
	}
	whole := true
	if t.at('.') {
		t.pos++
		whole = false
		if t.digits() == 0 {
			return false
		}
	}
	if t.at('e') || t.at('E') {
		return false // nobody writes it
	}
	text := string(t.js[start:t.pos])
	if whole {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return false
		}
		t.out, err = abi.AppendValue(t.out, i)
		return err == nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	t.out, err = abi.AppendValue(t.out, f)
	return err == nil
}

func (t *transcoder) at(c byte) bool { return t.pos < len(t.js) && t.js[t.pos] == c }

// digits skips digits and returns how many there were.
func (t *transcoder) digits() (n int) {
	for ; t.pos < len(t.js) && t.js[t.pos]-'0' <= 9; t.pos++ {
		n++
	}
	return n
}

// str appends a string.
func (t *transcoder) str() bool {
	t.pos++
	start := t.pos
	end := t.plain()
	if end < len(t.js) && t.js[end] == '"' {
		t.pos = end + 1
		return t.text(t.js[start:end])
	}
	t.spare = append(t.spare[:0], t.js[start:end]...)
	for end < len(t.js) && t.js[end] == '\\' {
		t.pos = end + 1
		if !t.escape() {
			return false
		}
		start, end = t.pos, t.plain()
		t.spare = append(t.spare, t.js[start:end]...)
	}
	if end == len(t.js) || t.js[end] != '"' {
		return false
	}
	t.pos = end + 1
	return t.text(t.spare)
}

// plain returns the end of the plain text at pos: a quote, a backslash, or a
// byte that may not stand in a string.
func (t *transcoder) plain() int {
	for i := t.pos; i < len(t.js); i++ {
		if c := t.js[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return len(t.js)
}

// escape appends to spare what stands behind a backslash.
func (t *transcoder) escape() bool {
	if t.pos >= len(t.js) {
		return false
	}
	c := t.js[t.pos]
	t.pos++
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		return t.unicode()
	default:
		return false
	}
	t.spare = append(t.spare, c)
	return true
}

// unicode appends the character that four hexadecimal digits name. Those that
// are halves of one are left to others.
func (t *transcoder) unicode() bool {
	if len(t.js)-t.pos < 4 {
		return false
	}
	r, err := strconv.ParseUint(string(t.js[t.pos:t.pos+4]), 16, 16)
	if err != nil || r >= 0xd800 && r < 0xe000 {
		return false
	}
	t.pos += 4
	t.spare = utf8.AppendRune(t.spare, rune(r))
	return true
}

func (t *transcoder) text(s []byte) bool {
	switch n := len(s); {
	case n <= 31:
		t.out = append(t.out, 0xa0|byte(n))
	case n <= math.MaxUint8:
		t.out = append(t.out, 0xd9, byte(n))
	case n <= math.MaxUint16:
		t.out = binary.BigEndian.AppendUint16(append(t.out, 0xda), uint16(n))
	default:
		t.out = binary.BigEndian.AppendUint32(append(t.out, 0xdb), uint32(n)) //nolint:gosec // at most maxAnswerJSON
	}
	t.out = append(t.out, s...)
	return utf8.Valid(s)
}
