package history

import "container/list"

// lru keeps values within a number of bytes: those that were used last. It is
// not safe for concurrent use.
type lru[K comparable, V any] struct {
	limit, size int // bytes
	byKey       map[K]*list.Element
	order       *list.List // of *kept, the one used last at the front
}

type kept[K comparable, V any] struct {
	key   K
	value V
	size  int
}

func newLRU[K comparable, V any](limit int) lru[K, V] {
	return lru[K, V]{limit: limit, byKey: map[K]*list.Element{}, order: list.New()}
}

// get returns the value of a key; nil if there is none.
func (l *lru[K, V]) get(key K) *V {
	if e := l.byKey[key]; e != nil {
		return &e.Value.(*kept[K, V]).value
	}
	return nil
}

// use is get of what is used now: an empty value where there is none.
func (l *lru[K, V]) use(key K) *kept[K, V] {
	e := l.byKey[key]
	if e == nil {
		e = l.order.PushFront(&kept[K, V]{key: key})
		l.byKey[key] = e
	} else {
		l.order.MoveToFront(e)
	}
	return e.Value.(*kept[K, V])
}

// resize says what a value takes now, and forgets others where there is no room.
func (l *lru[K, V]) resize(k *kept[K, V], size int) {
	l.size += size - k.size
	for k.size = size; l.size > l.limit && l.order.Len() > 0; {
		l.forget(l.order.Back().Value.(*kept[K, V]).key)
	}
}

func (l *lru[K, V]) forget(key K) {
	if e := l.byKey[key]; e != nil {
		l.size -= e.Value.(*kept[K, V]).size
		l.order.Remove(e)
		delete(l.byKey, key)
	}
}
