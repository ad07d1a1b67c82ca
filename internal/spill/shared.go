// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"weak"
)

// Shared stores equal bytes only once. The zero Shared is ready to use. It is safe for concurrent use.
type Shared struct {
	mu    sync.Mutex
	known map[string]weak.Pointer[Bytes] // by digest; guarded by mu
}

// Put stores b, or returns the Bytes that are still in use for the same digest. The digest must be that of b.
func (s *Shared) Put(digest string, b []byte) *Bytes {
	s.mu.Lock() // held while a file is written: a concurrent caller with the same bytes would have to wait for the disk, too
	defer s.mu.Unlock()
	if known := s.known[digest].Value(); known != nil {
		return known
	}
	return s.add(digest, Put(b))
}

// Fill stores the bytes that fill writes, or returns the Bytes that are still in use for the digest that fill returns. The bytes are never
// in memory as a whole, unless no file can be created.
func (s *Shared) Fill(fill func(w io.Writer) (digest string, err error)) (*Bytes, string, error) {
	stored := &Bytes{}
	var buffer bytes.Buffer
	var w io.Writer = &buffer
	if file, err := Create(""); err == nil {
		stored.file, w = file, file
	}
	digest, err := fill(w)
	if err == nil && stored.file != nil {
		var end int64
		end, err = stored.file.Seek(0, io.SeekCurrent)
		stored.size = int(end)
	}
	if err != nil {
		return nil, "", errors.Join(err, stored.close())
	}
	stored.here = buffer.Bytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[digest].Value(); known != nil {
		return known, digest, stored.close()
	}
	return s.add(digest, stored), digest, nil
}

// add adds Bytes, and forgets those that are no longer in use; mu is held.
func (s *Shared) add(digest string, stored *Bytes) *Bytes {
	for other, known := range s.known {
		if known.Value() == nil {
			delete(s.known, other)
		}
	}
	if s.known == nil {
		s.known = map[string]weak.Pointer[Bytes]{}
	}
	s.known[digest] = weak.Make(stored)
	return stored
}
