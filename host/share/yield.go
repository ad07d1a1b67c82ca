// SPDX-License-Identifier: Apache-2.0

package share

import (
	"runtime"
	"runtime/metrics"
)

// Runnable counts the goroutines that wait for a CPU. It belongs to the goroutine that
// runs the guest.
type Runnable struct{ sample [1]metrics.Sample }

// count takes a fifth of a microsecond.
func (r *Runnable) count() uint64 {
	if r.sample[0].Name == "" {
		r.sample[0].Name = "/sched/goroutines/runnable:goroutines"
	}
	metrics.Read(r.sample[:])
	if r.sample[0].Value.Kind() != metrics.KindUint64 {
		return 1 // this version of Go does not count them
	}
	return r.sample[0].Value.Uint64()
}

// mustYield reports whether a guest that is in Go code must let other goroutines run.
// Wazero's code cannot be preempted, so no other goroutine runs on its CPU before. But a
// yield wakes an idle CPU, which takes over the guest, and this repeats with each slice: a
// goroutine woken by a timer would wait 2 ms although a CPU is free. The garbage collector
// needs no yield, because it stops the guest wherever it calls into Go. spare is the number
// of CPUs on which guests never have a turn.
func mustYield(free, spare int, runnable uint64) bool { return free+spare <= 0 || runnable > 0 }

// Yield lets other goroutines run if it must. A nil CPUScheduler does not know the number
// of free CPUs, and always yields.
func (s *CPUScheduler) Yield(r *Runnable) {
	if s == nil || mustYield(s.Free(), runtime.GOMAXPROCS(0)-s.cpus, r.count()) {
		runtime.Gosched()
	}
}
