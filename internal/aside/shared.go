package aside

import (
	"sync"
	"weak"
)

// Shared keeps bytes once for all who put the same. The zero Shared is ready for use, by
// any number of goroutines.
type Shared struct {
	mu    sync.Mutex
	known map[string]weak.Pointer[Bytes] // by digest; guarded by mu
}

// Put keeps b, or returns what somebody still has of these bytes. The digest is theirs.
func (s *Shared) Put(digest string, b []byte) *Bytes {
	s.mu.Lock() // while a file is written: another writer of it would wait for the disk, too
	defer s.mu.Unlock()
	if kept := s.known[digest].Value(); kept != nil {
		return kept
	}
	for other, kept := range s.known {
		if kept.Value() == nil {
			delete(s.known, other)
		}
	}
	if s.known == nil {
		s.known = map[string]weak.Pointer[Bytes]{}
	}
	kept := Put(b)
	s.known[digest] = weak.Make(kept)
	return kept
}
