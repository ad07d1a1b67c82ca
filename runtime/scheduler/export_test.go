// SPDX-License-Identifier: Apache-2.0

package scheduler

// Forget removes the pending request of a key, if it has one; a run that has been handed out is not affected, nor is a
// delay. It is O(1), or O(log n) if a timer is removed.
func (s *Scheduler[K, M]) Forget(key K) {
	e, known := s.entries[key]
	if !known || !e.pending {
		return
	}
	s.unplace(e)
	e.pending = false
	e.clear()
	s.place(e)
}
