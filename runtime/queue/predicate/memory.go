// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"hash/maphash"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// memory records when the last change of an object passed. It stores only a hash of the object's identity, and forgets it when the object
// is deleted or the TTL has expired; a forgotten object is treated as one that never passed.
//
// A nil memory has no TTL and never expires. Two objects with the same hash share an entry: one change in 2^64 passes late.
type memory struct {
	ttl   time.Duration
	start time.Time                // the origin of the times below
	last  map[uint64]time.Duration // since start
	sweep time.Duration            // when to remove expired entries next
}

func newMemory(ttl time.Duration) *memory {
	return &memory{ttl: ttl, last: map[uint64]time.Duration{}}
}

// key returns a hash that identifies an object. It includes the name, for APIs without uids.
func key(o *reflector.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	ref := o.Ref()
	writeString(&h, o.UID())
	writeString(&h, ref.Namespace)
	writeString(&h, ref.Name)
	return h.Sum64()
}

// expired reports whether no change of o has passed within the TTL.
func (m *memory) expired(now time.Time, o *reflector.Object) bool {
	if m == nil {
		return false
	}
	at, ok := m.last[key(o)]
	return !ok || now.Sub(m.start)-at >= m.ttl
}

// record notes that a change of o passes now.
func (m *memory) record(now time.Time, o *reflector.Object) {
	if m == nil {
		return
	}
	if m.start.IsZero() {
		m.start, m.sweep = now, m.ttl
	}
	at := now.Sub(m.start)
	if at >= m.sweep {
		m.forgetOld(at)
	}
	m.last[key(o)] = at
}

func (m *memory) forget(o *reflector.Object) {
	if m != nil {
		delete(m.last, key(o))
	}
}

// forgetOld removes expired entries. It runs once per TTL and builds a new map, because a map does not shrink.
func (m *memory) forgetOld(now time.Duration) {
	m.sweep = now + m.ttl
	next := map[uint64]time.Duration{}
	for k, at := range m.last {
		if now-at < m.ttl {
			next[k] = at
		}
	}
	m.last = next
}
