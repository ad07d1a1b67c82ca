package history

// lru keeps values within a number of bytes: those that were used last. It is
// not safe for concurrent use.
type lru[K comparable, V any] struct {
	limit, size int // bytes
	byKey       map[K]*kept[K, V]
	ends        kept[K, V] // of the ring: next is the one used last, previous the first to go
	spare       *kept[K, V]
	clear       func(*V) // makes a value empty; it may keep memory
}

// kept is a value in the ring of all.
type kept[K comparable, V any] struct {
	key            K
	value          V
	size           int
	next, previous *kept[K, V]
}

func newLRU[K comparable, V any](limit int, clear func(*V)) *lru[K, V] {
	l := &lru[K, V]{limit: limit, byKey: map[K]*kept[K, V]{}, clear: clear}
	l.ends.next, l.ends.previous = &l.ends, &l.ends
	return l
}

// get returns the value of a key; nil if there is none.
func (l *lru[K, V]) get(key K) *V {
	if k := l.byKey[key]; k != nil {
		return &k.value
	}
	return nil
}

// use is get of what is used now: an empty value where there is none.
func (l *lru[K, V]) use(key K) *kept[K, V] {
	k := l.byKey[key]
	if k == nil {
		if k = l.spare; k == nil {
			k = &kept[K, V]{}
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

// unlink takes a value out of the ring.
func (k *kept[K, V]) unlink() { k.next.previous, k.previous.next = k.previous, k.next }

// resize says what a value takes now, and forgets others where there is no room.
func (l *lru[K, V]) resize(k *kept[K, V], size int) {
	l.size += size - k.size
	for k.size = size; l.size > l.limit && len(l.byKey) > 0; {
		l.drop(l.ends.previous)
	}
}

// forget drops the value of a key.
func (l *lru[K, V]) forget(key K) {
	if k := l.byKey[key]; k != nil {
		l.drop(k)
	}
}

// drop drops a value. Its memory is that of the next new one.
func (l *lru[K, V]) drop(k *kept[K, V]) {
	l.size -= k.size
	k.unlink()
	delete(l.byKey, k.key)
	l.clear(&k.value)
	*k = kept[K, V]{value: k.value}
	l.spare = k
}
