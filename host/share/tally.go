// SPDX-License-Identifier: Apache-2.0

package share

import (
	"maps"
	"sync"
)

// Tally counts events by kind. The zero Tally is ready for use, by any number of
// goroutines.
type Tally[K comparable] struct {
	mu     sync.Mutex
	counts map[K]uint64 // guarded by mu
}

// Add counts one event.
func (t *Tally[K]) Add(kind K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[K]uint64{}
	}
	t.counts[kind]++
}

// All returns a copy of the counts, which is never nil.
func (t *Tally[K]) All() map[K]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[K]uint64{}
	maps.Copy(out, t.counts)
	return out
}
