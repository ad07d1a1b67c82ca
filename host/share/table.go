// SPDX-License-Identifier: Apache-2.0

package share

import "sync"

// Table holds values together with the number of their users: a value exists from its
// first user to its last. The zero Table is ready for use, by any number of goroutines.
type Table[K comparable, V any] struct {
	mu   sync.Mutex
	rows map[K]*row[V] // guarded by mu
}

// row is a value and the number of its users.
type row[V any] struct {
	value V
	users int
}

// Enter adds a user to the value of a key. For the first user, fresh becomes the value.
func (t *Table[K, V]) Enter(key K, fresh V) V {
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

// Leave removes a user of the value of a key, and reports whether it was the last.
func (t *Table[K, V]) Leave(key K) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[key]
	if r.users--; r.users > 0 {
		return false
	}
	delete(t.rows, key)
	return true
}

// Len returns the number of values.
func (t *Table[K, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows)
}
