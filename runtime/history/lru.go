// SPDX-License-Identifier: Apache-2.0

package history

// lru is a cache of values with a limit in bytes. It evicts the values that were not used
// for the longest time. It is not safe for concurrent use.
type lru[K comparable, V any] struct {
	limit, size int // bytes
	byKey       map[K]*entry[K, V]
	ends        entry[K, V]  // the head of the ring: next is the value used last, previous the first to evict
	spare       *entry[K, V] // an evicted entry whose memory the next new one reuses
	clear       func(*V)     // empties a value; it may retain its memory
}

// entry is a value in the ring.
type entry[K comparable, V any] struct {
	key            K
	value          V
	size           int
	next, previous *entry[K, V]
}

func newLRU[K comparable, V any](limit int, clear func(*V)) *lru[K, V] {
	l := &lru[K, V]{limit: limit, byKey: map[K]*entry[K, V]{}, clear: clear}
	l.ends.next, l.ends.previous = &l.ends, &l.ends
	return l
}

// get returns the value of a key, or nil if there is none.
func (l *lru[K, V]) get(key K) *V {
	if k := l.byKey[key]; k != nil {
		return &k.value
	}
	return nil
}

// use returns the entry of a key and makes it the one used last. It adds an empty one if
// there is none.
func (l *lru[K, V]) use(key K) *entry[K, V] {
	k := l.byKey[key]
	if k == nil {
		if k = l.spare; k == nil {
			k = &entry[K, V]{}
		}
		l.spare, k.key = nil, key
		l.byKey[key] = k
	} else {
		k.unlink()
	}
	k.next, k.previous = l.ends.next, &l.ends
	k.next.previous, l.ends.next = k, k
	return k
}

// unlink removes an entry from the ring.
func (k *entry[K, V]) unlink() { k.next.previous, k.previous.next = k.previous, k.next }

// resize sets the size of an entry, and evicts others if the limit is exceeded.
func (l *lru[K, V]) resize(k *entry[K, V], size int) {
	l.size += size - k.size
	for k.size = size; l.size > l.limit && len(l.byKey) > 0; {
		l.evict(l.ends.previous)
	}
}

// forget removes the value of a key.
func (l *lru[K, V]) forget(key K) {
	if k := l.byKey[key]; k != nil {
		l.evict(k)
	}
}

// evict removes an entry. The next new entry reuses its memory.
func (l *lru[K, V]) evict(k *entry[K, V]) {
	l.size -= k.size
	k.unlink()
	delete(l.byKey, k.key)
	l.clear(&k.value)
	*k = entry[K, V]{value: k.value}
	l.spare = k
}
