package host

import (
	"runtime"
	"runtime/metrics"
)

// runnable counts the goroutines that wait for a CPU. It belongs to the
// goroutine that runs the guest.
type runnable struct{ sample [1]metrics.Sample }

// count takes a fifth of a microsecond.
func (r *runnable) count() uint64 {
	if r.sample[0].Name == "" {
		r.sample[0].Name = "/sched/goroutines/runnable:goroutines"
	}
	metrics.Read(r.sample[:])
	if r.sample[0].Value.Kind() != metrics.KindUint64 {
		return 1 // a Go that does not count them
	}
	return r.sample[0].Value.Uint64()
}

// mustYield says whether a guest that is in Go code makes room for others. wazero's
// code cannot be preempted, so no other goroutine runs on its CPU before. But
// who yields wakes a CPU that has nothing to do, and that takes the guest
// over, and so on with each slice: with a CPU free, whom a timer wakes would
// run in two milliseconds and not at once. That the guest calls into Go at all is
// enough for the garbage collector, which stops it there. spare is how many
// CPUs guests have no turns on, however many want to compute.
func mustYield(free, spare int, runnable uint64) bool { return free+spare <= 0 || runnable > 0 }

// yield makes room for others where it must. Without Shares, the number of free
// CPUs is unknown.
func (s *CPUScheduler) yield(r *runnable) {
	if s == nil || mustYield(s.free(), runtime.GOMAXPROCS(0)-s.cpus, r.count()) {
		runtime.Gosched()
	}
}

// free returns the number of CPUs without a turn.
func (s *CPUScheduler) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeSlices.free
}
