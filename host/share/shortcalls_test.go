// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// In the long run, a tenant uses a tenth of a CPU without turns, and at most 11 ms at once.
func TestShortCalls_ArePaidByTime(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		start := time.Unix(1000, 0)
		now, used := start, time.Duration(0)
		var s ShortCalls
		for range 20_000 {
			now = now.Add(time.Duration(rnd.Int64N(int64(2 * time.Millisecond))))
			if s.Exceeded(now) {
				continue
			}
			slices := 1 + rnd.Int64N(8) // those beyond FreeSlices need a turn
			s.Charge(now, slices*1000, 1000)
			used += time.Duration(min(slices, FreeSlices)) * sliceTime
			if most := now.Sub(start)/shortPart + shortBurst/shortPart + FreeSlices*sliceTime; used > most {
				t.Fatalf("seed %d: %v without a turn after %v", seed, used, now.Sub(start))
			}
		}
		if part := now.Sub(start) / shortPart; used < part*8/10 {
			t.Errorf("seed %d: only %v, want about %v", seed, used, part)
		}
	}
}

// The modules of a tenant share one account, which is forgotten with the last of them.
func TestCPUScheduler_ShortCallsOfATenant(t *testing.T) {
	s := NewCPUScheduler(1)
	a, b := s.ShortCalls("a"), s.ShortCalls("b")
	if a != s.ShortCalls("a") || a == b {
		t.Error("a tenant has two accounts, or two tenants have one")
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	for range 3 {
		runtime.GC()
	}
	c := s.ShortCalls("c")
	if len(s.short) != 1 {
		t.Errorf("%d tenants are known, want 1", len(s.short))
	}
	runtime.KeepAlive(c)
}
