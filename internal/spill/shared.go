// SPDX-License-Identifier: Apache-2.0

package spill

import (
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
	for other, known := range s.known {
		if known.Value() == nil {
			delete(s.known, other)
		}
	}
	if s.known == nil {
		s.known = map[string]weak.Pointer[Bytes]{}
	}
	stored := Put(b)
	s.known[digest] = weak.Make(stored)
	return stored
}
