package host

import "sync"

// table has values with their users: a value is there from its first user to its last. The
// zero table is ready for use, by any number of goroutines.
type table[K comparable, V any] struct {
	mu   sync.Mutex
	rows map[K]*row[V] // guarded by mu
}

// row is a value and how many use it.
type row[V any] struct {
	value V
	users int
}

// enter adds a user to the value under a key, which is fresh for the first one.
func (t *table[K, V]) enter(key K, fresh V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[key]
	if r == nil {
		r = &row[V]{value: fresh}
		if t.rows == nil {
			t.rows = map[K]*row[V]{}
		}
		t.rows[key] = r
	}
	r.users++
	return r.value
}

// leave takes a user from the value under a key, and reports whether it was the last.
func (t *table[K, V]) leave(key K) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[key]
	if r.users--; r.users > 0 {
		return false
	}
	delete(t.rows, key)
	return true
}
