package watcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// jsonReader reads JSON values off a stream, each as a view of its buffer that
// is good until the next call. It finds where a value ends and does not look
// whether it is valid: who decodes it does.
type jsonReader struct {
	r   io.Reader
	buf []byte
	pos int   // the first byte in buf that was not read yet
	err error // of r
}

func newJSONReader(r io.Reader, size int) *jsonReader {
	return &jsonReader{r: r, buf: make([]byte, 0, size)}
}

// fill reads more. Unread data can move.
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

// next passes over white space and returns the byte there, unread.
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

// skip passes over c, which must come next.
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

// errNoLine says that what comes next is no object on one line.
var errNoLine = errors.New("no object on one line")

// line returns the next object, which must stand on one line. After an error,
// remainder has all that was not returned.
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

// remainder returns what was not read yet.
func (j *jsonReader) remainder() io.Reader {
	rest := io.Reader(bytes.NewReader(j.buf[j.pos:]))
	if j.err != nil {
		return io.MultiReader(rest, failed{j.err})
	}
	return io.MultiReader(rest, j.r)
}

// failed is a reader that has failed.
type failed struct{ err error }

// Read implements io.Reader.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

// value returns the next value, whatever it is.
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

// scanner finds the end of an object, an array or a string in pieces of it that
// grow.
type scanner struct {
	pos     int
	depth   int
	text    bool // pos is within a string
	escaped bool // behind a backslash
	broken  bool // a line ended within the value, or a string has a control character
}

// end returns where the value that starts b ends, or -1 where that is not in b
// yet. Each call must be given what the one before was given, and more.
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

// string returns where the string that i is in ends: at a quote, or with b.
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
