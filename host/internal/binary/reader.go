// SPDX-License-Identifier: Apache-2.0

// Package binary reads and writes the WebAssembly binary format: numbers, names,
// vectors and sections. It does not know what they mean.
package binary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrTruncated says that the bytes end where more must come.
var ErrTruncated = errors.New("ends too early: the file is truncated or damaged")

// Error is what is wrong at a byte of a module.
type Error struct {
	// At is the offset in the module.
	At  int
	Err error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("byte %#x: %v", e.At, e.Err) }

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error at a byte of a module.
func Errorf(at int, format string, args ...any) error {
	return &Error{at, fmt.Errorf(format, args...)}
}

// Reader reads the binary format front to back. After the first error it keeps
// that error, stays at the end and returns zeros, so callers check OK once per
// step that loops or keeps something. It never allocates by a length that the
// bytes do not back.
type Reader struct {
	b    []byte
	pos  int
	base int // where b begins in the module
	err  *Error
}

// NewReader reads b, which begins at byte base of a module.
func NewReader(b []byte, base int) Reader { return Reader{b: b, base: base} }

// Left returns how many bytes are left to read.
func (r *Reader) Left() int { return len(r.b) - r.pos }

// Pos returns how many bytes have been read.
func (r *Reader) Pos() int { return r.pos }

// At returns the current offset in the module.
func (r *Reader) At() int { return r.base + r.pos }

// Since returns what was read since Pos was from.
func (r *Reader) Since(from int) []byte { return r.b[from:r.pos] }

// Rest returns what is left to read.
func (r *Reader) Rest() []byte { return r.b[r.pos:] }

// OK reports whether nothing was wrong until now.
func (r *Reader) OK() bool { return r.err == nil }

// Err returns the first error, which is an *Error.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// End fails unless everything has been read, and returns the first error.
func (r *Reader) End() error {
	if r.Left() > 0 {
		r.Failf("%d bytes too many", r.Left())
	}
	return r.Err()
}

// Fail makes err the reader's error if it is the first. An *Error, as that of a
// Block, keeps its place; any other is one of the current byte.
func (r *Reader) Fail(err error) {
	if err == nil || r.err != nil {
		return
	}
	placed, ok := err.(*Error) //nolint:errorlint // a wrapped one has another text
	if !ok {
		placed = &Error{r.At(), err}
	}
	r.err, r.pos = placed, len(r.b)
}

// Failf is Fail with a text.
func (r *Reader) Failf(format string, args ...any) { r.Fail(fmt.Errorf(format, args...)) }

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if r.pos >= len(r.b) {
		r.Fail(ErrTruncated)
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// U32 reads an unsigned LEB128 of at most 32 bits.
func (r *Reader) U32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 { // nearly always
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.Byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.Failf("number is longer than 32 bits")
	return 0
}

// LEB reads a LEB128 of at most n bytes and returns its value as a signed number
// of 64 bits. The compiler checks whether it fits its type.
func (r *Reader) LEB(n int) int64 {
	var v uint64
	for i := range n {
		c := r.Byte()
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if shift := 7 * (i + 1); c&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			return int64(v) //nolint:gosec // bits
		}
	}
	r.Failf("number is longer than %d bytes", n)
	return 0
}

// Skip reads over n bytes.
func (r *Reader) Skip(n int) {
	if r.Left() < n {
		r.Fail(ErrTruncated)
		return
	}
	r.pos += n
}

// Count reads the length of a vector whose elements take a byte at least.
func (r *Reader) Count() int {
	n := r.U32()
	if int64(n) > int64(r.Left()) {
		r.Fail(ErrTruncated)
		return 0
	}
	return int(n)
}

// Each reads a vector: read reads one element.
func (r *Reader) Each(read func(*Reader)) {
	n := r.Count()
	for i := 0; i < n && r.err == nil; i++ {
		if read(r); r.err != nil {
			r.err = &Error{r.err.At, fmt.Errorf("entry %d: %w", i, r.err.Err)}
		}
	}
}

// Block reads a length and that many bytes, as a reader of their own.
func (r *Reader) Block() Reader {
	n := r.Count()
	r.pos += n
	return Reader{b: r.b[r.pos-n : r.pos], base: r.base + r.pos - n, err: r.err}
}

// Name reads a name.
func (r *Reader) Name() string {
	b := r.Block()
	if !utf8.Valid(b.b) {
		r.Failf("name is not UTF-8")
	}
	return string(b.b)
}

// Limits are the size of a memory, in pages, or of a table, in entries.
type Limits struct {
	Min, Max       uint32
	HasMax, Shared bool
}

// Limits reads the size of a memory or table.
func (r *Reader) Limits() (l Limits) {
	flags := r.Byte()
	switch {
	case flags&4 != 0:
		r.Failf("64-bit memories and tables are not supported")
	case flags > 3:
		r.Failf("flags %#x of a memory or table are unknown", flags)
	}
	l.HasMax, l.Shared = flags&1 != 0, flags&2 != 0
	l.Min = r.U32()
	if l.HasMax {
		l.Max = r.U32()
	}
	return l
}

// AppendU32 appends an unsigned LEB128.
func AppendU32(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// AppendS64 appends a signed LEB128.
func AppendS64(dst []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(dst, c)
		}
		dst = append(dst, c|0x80)
	}
}

// AppendName appends a name, or any bytes, with their length before them.
func AppendName[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(AppendU32(dst, uint32(len(s))), s...) //nolint:gosec // a module is smaller than 4 GiB
}

// AppendSection appends a section.
func AppendSection(dst []byte, id byte, payload []byte) []byte {
	return AppendName(append(dst, id), payload)
}
