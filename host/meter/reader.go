package meter

import (
	"encoding/binary"
	"unicode/utf8"
)

// reader reads the binary format front to back. After the first error it keeps
// that error, stays where it is and returns zeros, so callers look at err once
// per step that loops or allocates. base is where b begins in the module.
type reader struct {
	b    []byte
	pos  int
	base int
	err  error
}

func (r *reader) left() int { return len(r.b) - r.pos }

// at is the current offset in the module.
func (r *reader) at() int { return r.base + r.pos }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = failf(r.at(), "%w", err)
		r.pos = len(r.b)
	}
}

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = failf(r.at(), format, args...)
		r.pos = len(r.b)
	}
}

func (r *reader) byte() byte {
	if r.pos >= len(r.b) {
		r.fail(errTruncated)
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 { // nearly always
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.failf("number is longer than 32 bits")
	return 0
}

// leb reads over a LEB128 of at most n bytes and returns its value as a signed
// number of 64 bits. Whether it fits its type is left to who compiles.
func (r *reader) leb(n int) int64 {
	var v uint64
	for i := range n {
		c := r.byte()
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if shift := 7 * (i + 1); c&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			return int64(v) //nolint:gosec // bits
		}
	}
	r.failf("number is longer than %d bytes", n)
	return 0
}

// skip reads over n bytes.
func (r *reader) skip(n int) {
	if r.left() < n {
		r.fail(errTruncated)
		return
	}
	r.pos += n
}

// count reads the length of a vector whose elements take a byte at least, so
// that nothing is allocated by a number that the bytes do not back.
func (r *reader) count() int {
	n := r.u32()
	if int64(n) > int64(r.left()) {
		r.fail(errTruncated)
		return 0
	}
	return int(n)
}

// block reads a length and that many bytes, as a reader of its own.
func (r *reader) block() reader {
	n := r.count()
	r.pos += n
	return reader{b: r.b[r.pos-n : r.pos], base: r.base + r.pos - n, err: r.err}
}

func (r *reader) name() string {
	b := r.block()
	if !utf8.Valid(b.b) {
		r.failf("name is not UTF-8")
	}
	return string(b.b)
}

// end fails unless everything has been read.
func (r *reader) end() error {
	if r.left() > 0 {
		r.failf("%d bytes too many", r.left())
	}
	return r.err
}

func appendU32(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// appendS64 appends a signed LEB128.
func appendS64(dst []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(dst, c)
		}
		dst = append(dst, c|0x80)
	}
}

// appendSection appends a section.
func appendSection(dst []byte, id byte, payload []byte) []byte {
	dst = appendU32(append(dst, id), uint32(len(payload))) //nolint:gosec // a module is smaller than 4 GiB
	return append(dst, payload...)
}

func appendName(dst []byte, s string) []byte {
	return append(appendU32(dst, uint32(len(s))), s...) //nolint:gosec // a short name
}
