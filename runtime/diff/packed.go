package diff

import (
	"encoding/binary"
	"errors"
)

// errPacked says that bytes are not what abi.AppendValue writes of an object.
var errPacked = errors.New("object: not the msgpack of a Kubernetes object")

// form is what a packed value is.
type form uint8

const (
	scalar form = iota
	text
	array
	mapping
)

// head is how a value begins: how many elements or bytes of text it has, and
// where they begin. Of a scalar, size is what it takes in all.
type head struct {
	form  form
	n     int
	begin int // after the head
}

// longs are the heads of texts, arrays and maps that have a length, and binary
// and extension values, which an object never has.
var longs = [256]struct {
	form  form
	bytes uint8 // of the length
}{
	0xd9: {text, 1}, 0xda: {text, 2}, 0xdb: {text, 4},
	0xdc: {array, 2}, 0xdd: {array, 4}, 0xde: {mapping, 2}, 0xdf: {mapping, 4},
}

// scalars are the sizes of scalars by their first byte, that byte included; 0
// for what is none.
var scalars = [256]uint8{0xc0: 1, 0xc2: 1, 0xc3: 1, 0xca: 5, 0xcb: 9, 0xcc: 2, 0xcd: 3, 0xce: 5, 0xcf: 9, 0xd0: 2, 0xd1: 3, 0xd2: 5, 0xd3: 9}

// headOf reads the head of the value that b begins with.
func headOf(b []byte) (head, error) {
	if len(b) == 0 {
		return head{}, errPacked
	}
	h := head{begin: 1}
	switch c := b[0]; {
	case c <= 0x7f, c >= 0xe0:
	case c <= 0x8f:
		h.form, h.n = mapping, int(c&0x0f)
	case c <= 0x9f:
		h.form, h.n = array, int(c&0x0f)
	case c <= 0xbf:
		h.form, h.n = text, int(c&0x1f)
	case scalars[c] > 0:
		h.begin = int(scalars[c])
	case longs[c].bytes > 0:
		h.form = longs[c].form
		h.begin += int(longs[c].bytes)
		if len(b) < h.begin {
			return head{}, errPacked
		}
		var wide [4]byte
		copy(wide[4-longs[c].bytes:], b[1:h.begin])
		h.n = int(binary.BigEndian.Uint32(wide[:]))
	default:
		return head{}, errPacked
	}
	if rest := len(b) - h.begin; rest < 0 || h.n > rest {
		return head{}, errPacked // each element takes a byte at least
	}
	return h, nil
}

// next cuts the first value off b.
func next(b []byte) (value, rest []byte, err error) {
	at := 0
	for left := 1; left > 0; left-- {
		h, err := headOf(b[at:])
		if err != nil {
			return nil, nil, err
		}
		at += h.begin
		switch h.form {
		case scalar:
		case text:
			at += h.n
		case array:
			left += h.n
		case mapping:
			left += 2 * h.n
		}
	}
	return b[:at], b[at:], nil
}

// nextText cuts a text, the key of a map, off b.
func nextText(b []byte) (key, rest []byte, err error) {
	h, err := headOf(b)
	if err != nil || h.form != text {
		return nil, nil, errPacked
	}
	return b[h.begin : h.begin+h.n], b[h.begin+h.n:], nil
}
