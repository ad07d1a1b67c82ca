package scheduler

// Forget drops the pending request of a key, if it has one; a run that has been handed out is not touched, nor is a hold. It is O(1), or
// O(log n) where a timer is taken away.
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
