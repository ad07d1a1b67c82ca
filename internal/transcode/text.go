// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
)

// number appends an integer, or a float if the number has a fraction. It rejects exponents and integers with too many digits.
func (t *Transcoder) number() bool {
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
		return false // API servers do not use exponents
	}
	text := string(t.js[start:t.pos])
	if whole {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return false
		}
		t.out = abi.AppendInt(t.out, i)
		return true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	t.out = binary.BigEndian.AppendUint64(append(t.out, 0xcb), math.Float64bits(f))
	return true
}

func (t *Transcoder) at(c byte) bool { return t.pos < len(t.js) && t.js[t.pos] == c }

// digits skips digits and returns their number.
func (t *Transcoder) digits() (n int) {
	for ; t.pos < len(t.js) && t.js[t.pos]-'0' <= 9; t.pos++ {
		n++
	}
	return n
}

// str appends a string.
func (t *Transcoder) str() bool {
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

// plain returns the end of the plain text at pos: a quote, a backslash, or a byte that is not allowed in a string.
func (t *Transcoder) plain() int {
	for i := t.pos; i < len(t.js); i++ {
		if c := t.js[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return len(t.js)
}

// escape appends the character of an escape sequence to spare.
func (t *Transcoder) escape() bool {
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

// unicode appends the character with the given four hexadecimal digits. It rejects halves of surrogate pairs.
func (t *Transcoder) unicode() bool {
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

func (t *Transcoder) text(s []byte) bool {
	t.out = append(abi.AppendTextHead(t.out, len(s)), s...)
	return utf8.Valid(s)
}
