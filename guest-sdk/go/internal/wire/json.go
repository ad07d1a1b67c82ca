// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errJSON means that a type has produced invalid JSON.
var errJSON = errors.New("not JSON")

// AppendJSON appends the msgpack of js, one JSON value. A number without
// fraction and exponent becomes an integer if it fits into an int64, otherwise
// a float.
func AppendJSON(dst, js []byte) ([]byte, error) {
	p := jsonParser{js: js, out: dst}
	if err := p.value(0); err != nil {
		return nil, err
	}
	if p.next() != 0 || p.pos < len(js) {
		return nil, errJSON
	}
	return p.out, nil
}

type jsonParser struct {
	js  []byte
	pos int
	out []byte
}

// next skips white space and returns the next byte, or 0 at the end.
func (p *jsonParser) next() byte {
	for ; p.pos < len(p.js); p.pos++ {
		switch c := p.js[p.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (p *jsonParser) value(depth int) error {
	if depth > MaxDepth {
		return ErrTooDeep
	}
	switch c := p.next(); c {
	case '{', '[':
		return p.container(c, depth)
	case '"':
		return p.text()
	case 't':
		return p.word("true", 0xc3)
	case 'f':
		return p.word("false", 0xc2)
	case 'n':
		return p.word("null", 0xc0)
	default:
		return p.number()
	}
}

func (p *jsonParser) word(word string, code byte) error {
	if !bytes.HasPrefix(p.js[p.pos:], []byte(word)) {
		return errJSON
	}
	p.pos += len(word)
	p.out = append(p.out, code)
	return nil
}

// container parses a map or an array. It writes the header at the end.
func (p *jsonParser) container(open byte, depth int) error {
	p.pos++
	head, n, end, code := len(p.out), 0, open+2, byte(0xdd) // in ASCII, ']' and '}' follow '[' and '{' by two
	if open == '{' {
		code = 0xdf
	}
	p.out = append(p.out, code, 0, 0, 0, 0)
	for ; p.next() != end; n++ {
		if n > 0 {
			if p.next() != ',' {
				return errJSON
			}
			p.pos++
		}
		if open == '{' {
			if p.next() != '"' {
				return errJSON
			}
			if err := p.text(); err != nil {
				return err
			}
			if p.next() != ':' {
				return errJSON
			}
			p.pos++
		}
		if err := p.value(depth + 1); err != nil {
			return err
		}
	}
	p.pos++
	for i := range 4 {
		p.out[head+1+i] = byte(n >> (24 - 8*i))
	}
	return nil
}

func (p *jsonParser) number() error {
	start, whole := p.pos, true
	p.one("-")
	zero := p.pos < len(p.js) && p.js[p.pos] == '0'
	if n := p.digits(); n == 0 || zero && n > 1 {
		return errJSON
	}
	if p.one(".") {
		if whole = false; p.digits() == 0 {
			return errJSON
		}
	}
	if p.one("eE") {
		p.one("+-")
		if whole = false; p.digits() == 0 {
			return errJSON
		}
	}
	text := string(p.js[start:p.pos])
	if whole {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			p.out = AppendInt(p.out, i)
			return nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return ErrNumber
	}
	p.out = AppendFloat(p.out, f)
	return nil
}

// one skips one of the characters, if it comes next.
func (p *jsonParser) one(of string) bool {
	ok := p.pos < len(p.js) && strings.IndexByte(of, p.js[p.pos]) >= 0
	if ok {
		p.pos++
	}
	return ok
}

// digits skips digits and returns their number.
func (p *jsonParser) digits() (n int) {
	for ; p.pos < len(p.js) && p.js[p.pos]-'0' <= 9; p.pos++ {
		n++
	}
	return n
}

// text parses a string.
func (p *jsonParser) text() error {
	p.pos++
	var s []byte // used only if the string has an escape
	for start := p.pos; p.pos < len(p.js); p.pos++ {
		switch c := p.js[p.pos]; {
		case c == '"':
			s = append(s, p.js[start:p.pos]...)
			p.pos++
			var err error
			p.out, err = AppendText(p.out, string(s))
			return err
		case c == '\\':
			s = append(s, p.js[start:p.pos]...)
			var ok bool
			if s, ok = p.escape(s); !ok {
				return errJSON
			}
			start = p.pos + 1
		case c < ' ':
			return errJSON
		}
	}
	return errJSON
}

// escape appends the character of the escape at pos, and stops at the last byte
// of the escape.
func (p *jsonParser) escape(s []byte) ([]byte, bool) {
	p.pos++
	if p.pos >= len(p.js) {
		return nil, false
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := p.js[p.pos]
	if i := bytes.IndexByte([]byte(from), c); i >= 0 {
		return append(s, to[i]), true
	}
	if c != 'u' {
		return nil, false
	}
	r, ok := p.hex(p.pos + 1)
	if !ok {
		return nil, false
	}
	p.pos += 4
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(s, r), true
	}
	pair := rune(utf8.RuneError)
	if bytes.HasPrefix(p.js[p.pos+1:], []byte(`\u`)) {
		if low, ok := p.hex(p.pos + 3); ok {
			if pair = utf16.DecodeRune(r, low); pair != utf8.RuneError {
				p.pos += 6
			}
		}
	}
	return utf8.AppendRune(s, pair), true
}

func (p *jsonParser) hex(at int) (rune, bool) {
	if at+4 > len(p.js) {
		return 0, false
	}
	u, err := strconv.ParseUint(string(p.js[at:at+4]), 16, 16)
	return rune(u), err == nil
}
