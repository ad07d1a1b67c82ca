// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync/atomic"
	"time"
)

// A tenant may use a tenth of a CPU in the first slices of its calls, which need no turn, and
// 10 ms of CPU time at once. Beyond that, its calls take a turn when they start.
const (
	shortPart  = 10
	shortBurst = shortPart * 10 * time.Millisecond
)

// ShortCalls counts the CPU time that a tenant has used without turns of a CPUScheduler. A nil
// ShortCalls counts nothing. All methods are safe for concurrent use.
type ShortCalls struct{ paid atomic.Int64 } // when the time is paid for, in nanoseconds of Unix time

// Exceeded reports whether a call must take a turn when it starts.
func (s *ShortCalls) Exceeded(now time.Time) bool {
	return s != nil && time.Duration(s.paid.Load()-now.UnixNano()) > shortBurst
}

// Charge adds a call that has used this part of its free slices, by the fuel of a slice.
func (s *ShortCalls) Charge(now time.Time, fuel, slice int64) {
	if s == nil {
		return
	}
	took := min(max(0, fuel), FreeSlices*slice) * int64(sliceTime) / slice
	for {
		paid := s.paid.Load()
		if s.paid.CompareAndSwap(paid, max(paid, now.UnixNano())+shortPart*took) {
			return
		}
	}
}
