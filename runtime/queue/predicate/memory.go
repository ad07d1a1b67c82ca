package predicate

import (
	"hash/maphash"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// memory knows when the last change of an object passed. It keeps nothing of
// the object but a hash of its uid, and forgets it when the object is deleted or
// the TTL has gone by, which come to the same as never having passed.
//
// A nil memory never expires: there is no TTL. Two objects of one hash share an entry: one change in 2^64 passes late.
type memory struct {
	ttl   time.Duration
	start time.Time                // the clock of what follows
	last  map[uint64]time.Duration // since start
	sweep time.Duration            // when to look for entries past their time
}

func newMemory(ttl time.Duration) *memory {
	return &memory{ttl: ttl, last: map[uint64]time.Duration{}}
}

// key stands for one object; the name as well, for APIs without uids.
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

// record says that a change of o passes now.
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

// forgetOld removes what has expired. It is done once per TTL, which costs an
// object one look per TTL, into a new map, because a map does not shrink.
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
