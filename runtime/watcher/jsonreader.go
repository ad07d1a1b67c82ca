// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// jsonReader reads JSON values from a stream, each as a slice of its buffer that is valid until the next call. It finds the end of a value
// without validating the value, which is left to the decoder.
type jsonReader struct {
	r   io.Reader
	buf []byte
	pos int   // the first unread byte in buf
	err error // of r
}

func newJSONReader(r io.Reader, size int) *jsonReader {
	return &jsonReader{r: r, buf: make([]byte, 0, size)}
}

// fill reads more data. Unread data can move within the buffer.
func (j *jsonReader) fill() error {
	if j.err != nil {
		return j.err
	}
	if j.pos > 0 {
		j.buf = j.buf[:copy(j.buf, j.buf[j.pos:])]
		j.pos = 0
	}
	if len(j.buf) == cap(j.buf) {
		j.buf = append(make([]byte, 0, 2*cap(j.buf)), j.buf...)
	}
	for range 100 {
		var n int
		n, j.err = j.r.Read(j.buf[len(j.buf):cap(j.buf)])
		j.buf = j.buf[:len(j.buf)+n]
		if n > 0 {
			return nil
		}
		if j.err != nil {
			return j.err
		}
	}
	j.err = io.ErrNoProgress
	return j.err
}

// next skips white space and returns the next byte without consuming it.
func (j *jsonReader) next() (byte, error) {
	for {
		for ; j.pos < len(j.buf); j.pos++ {
			switch c := j.buf[j.pos]; c {
			case ' ', '\t', '\n', '\r':
			default:
				return c, nil
			}
		}
		if err := j.fill(); err != nil {
			return 0, err
		}
	}
}

// skip consumes c, which must be the next character.
func (j *jsonReader) skip(c byte) error {
	got, err := j.next()
	if err == nil && got != c {
		err = fmt.Errorf("want %q, got %q", c, got)
	}
	if err == nil {
		j.pos++
	}
	return err
}

// errNoLine means that the next value is not an object on one line.
var errNoLine = errors.New("no object on one line")

// line returns the next object, which must be on one line. After an error, remainder returns all unread data.
func (j *jsonReader) line() ([]byte, error) {
	c, err := j.next()
	if err == nil && c != '{' {
		err = errNoLine
	}
	if err != nil {
		return nil, err
	}
	return j.scan(true)
}

// remainder returns the unread data.
func (j *jsonReader) remainder() io.Reader {
	rest := io.Reader(bytes.NewReader(j.buf[j.pos:]))
	if j.err != nil {
		return io.MultiReader(rest, failed{j.err})
	}
	return io.MultiReader(rest, j.r)
}

// failed is a reader that always fails.
type failed struct{ err error }

// Read implements io.Reader.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

// value returns the next value of any type.
func (j *jsonReader) value() ([]byte, error) {
	c, err := j.next()
	if err != nil {
		return nil, err
	}
	if c == '{' || c == '[' || c == '"' {
		return j.scan(false)
	}
	for n := 0; ; {
		for ; j.pos+n < len(j.buf); n++ {
			if bytes.IndexByte([]byte(" \t\r\n,:{}[]\""), j.buf[j.pos+n]) < 0 {
				continue
			}
			if n == 0 {
				return nil, fmt.Errorf("want a value, got %q", c)
			}
			j.pos += n
			return j.buf[j.pos-n : j.pos], nil
		}
		if err := j.fill(); err != nil {
			return nil, err
		}
	}
}

// scan returns the object, array or string that starts at pos.
func (j *jsonReader) scan(line bool) ([]byte, error) {
	var s scanner
	for {
		n := s.end(j.buf[j.pos:])
		if line && s.broken {
			return nil, errNoLine
		}
		if n >= 0 {
			j.pos += n
			return j.buf[j.pos-n : j.pos], nil
		}
		if err := j.fill(); err != nil {
			return nil, err
		}
	}
}

// scanner finds the end of an object, an array or a string of which successively longer prefixes are available.
type scanner struct {
	pos     int
	depth   int
	text    bool // pos is inside a string
	escaped bool // after a backslash
	broken  bool // the value contains a line break, or a string contains a control character
}

// end returns the end of the value that starts b, or -1 if it is not in b yet. Each call must pass the data of the previous call, and more.
func (s *scanner) end(b []byte) int {
	i := s.pos
	for ; i < len(b); i++ {
		if s.text {
			if i = s.string(b, i); i == len(b) {
				break
			}
			if s.depth == 0 {
				return i + 1
			}
			continue
		}
		switch b[i] {
		case '"':
			s.text = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth <= 0 {
				return i + 1
			}
		case '\n':
			s.broken = true
		}
	}
	s.pos = i
	return -1
}

// string returns the end of the string that contains i: the position of its closing quote, or the end of b.
func (s *scanner) string(b []byte, i int) int {
	if s.escaped && i < len(b) {
		s.escaped = false
		i++
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.text = false
			return i
		case c == '\\':
			if i++; i == len(b) {
				s.escaped = true
				return i
			}
		case c < ' ':
			s.broken = true
		}
	}
	return i
}
