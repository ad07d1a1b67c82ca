// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
)

// An entry is a salt and then blocks, each behind its tag. What authenticates them is
// AES-GCM without a text, several times as fast as a hash: code has a hundred
// megabytes. Its key is that of the store, the format, the id and the salt hashed, and
// so belongs to one entry; the nonce of a block is its number, and whether it is the
// last. So a block holds nowhere else, and none can be missing.
const (
	saltSize = 32
	tagSize  = 16
	block    = 256 << 10
)

// tags makes the tags of the blocks of one entry.
type tags struct {
	gcm   cipher.AEAD
	nonce [12]byte
	n     uint64
}

func (s Store) tags(id ID, salt []byte) (*tags, error) {
	h := hmac.New(sha256.New, s.Key)
	for _, part := range [][]byte{[]byte(folder), id[:], salt} { // of fixed lengths
		h.Write(part)
	}
	b, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(b)
	return &tags{gcm: gcm}, err
}

// next is the tag of the next block.
func (t *tags) next(b []byte, last bool) []byte {
	t.n++
	binary.LittleEndian.PutUint64(t.nonce[:], t.n)
	t.nonce[11] = 0
	if last {
		t.nonce[11] = 1
	}
	return t.gcm.Seal(nil, t.nonce[:], nil, b)
}

// sealer writes an entry. Close writes its last block.
type sealer struct {
	*tags

	out io.Writer
	buf []byte
}

func (s Store) sealer(id ID, out io.Writer) (*sealer, error) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	t, err := s.tags(id, salt)
	if err != nil {
		return nil, err
	}
	_, err = out.Write(salt)
	return &sealer{t, out, make([]byte, 0, block)}, err
}

// Write implements io.Writer.
func (s *sealer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if len(s.buf) == block {
			if err := s.flush(false); err != nil {
				return n, err
			}
		}
		took := min(len(p), block-len(s.buf))
		s.buf = append(s.buf, p[:took]...)
		n, p = n+took, p[took:]
	}
	return n, nil
}

// Close implements io.Closer.
func (s *sealer) Close() error { return s.flush(true) }

func (s *sealer) flush(last bool) error {
	_, err := s.out.Write(s.next(s.buf, last))
	if err == nil {
		_, err = s.out.Write(s.buf)
	}
	s.buf = s.buf[:0]
	return err
}

// opener reads an entry, and gives only what it has checked.
type opener struct {
	*tags

	in   io.Reader
	buf  []byte // a tag and its block
	left []byte // of the block
	last bool
}

func (s Store) opener(id ID, in io.Reader) (*opener, error) {
	salt := make([]byte, saltSize)
	if _, err := io.ReadFull(in, salt); err != nil {
		return nil, forged(err)
	}
	t, err := s.tags(id, salt)
	return &opener{tags: t, in: in, buf: make([]byte, tagSize+block)}, err
}

// Read implements io.Reader.
func (o *opener) Read(p []byte) (int, error) {
	if len(o.left) == 0 {
		if o.last {
			return 0, io.EOF
		}
		if err := o.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.left)
	o.left = o.left[n:]
	return n, nil
}

// WriteTo implements io.WriterTo: it writes block by block, without a copy.
func (o *opener) WriteTo(w io.Writer) (written int64, err error) {
	for {
		n, err := w.Write(o.left)
		written += int64(n)
		if o.left = nil; err != nil || o.last {
			return written, err
		}
		if err := o.fill(); err != nil {
			return written, err
		}
	}
}

// fill reads and checks a block. One that is not full is the last; one that is full
// says by its tag whether it is.
func (o *opener) fill() error {
	n, err := io.ReadFull(o.in, o.buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return forged(err) // nothing, where the last block was to come
	}
	if n < tagSize {
		return ErrForged
	}
	before := *o.tags
	o.last = err != nil
	if o.left = o.buf[tagSize:n]; hmac.Equal(o.buf[:tagSize], o.next(o.left, o.last)) {
		return nil
	}
	if *o.tags = before; !o.last {
		if o.last = hmac.Equal(o.buf[:tagSize], o.next(o.left, true)); o.last && o.ended() {
			return nil
		}
	}
	o.left = nil
	return ErrForged
}

// ended reports whether nothing follows.
func (o *opener) ended() bool {
	var b bytes.Buffer
	n, err := io.CopyN(&b, o.in, 1)
	return n == 0 && errors.Is(err, io.EOF)
}
