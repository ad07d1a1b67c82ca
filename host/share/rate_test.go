// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Over any time, a module that waits as it is told uses no more than the rate
// allows, one second's fuel and its last slice; one that uses less never waits.
func TestBucket_HoldsTheRate(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		rate := 1 + rng.Int64N(1_000_000)
		var b Bucket
		start := time.Unix(1_000_000, 0)
		now := start
		var used, last int64
		for range 300 {
			last = rng.Int64N(rate/4 + 2)
			used += last
			wait := b.Charge(now, rate, last)
			if allowed := rate + last + int64(now.Sub(start).Seconds()*float64(rate)) + 1; used > allowed {
				t.Fatalf("seed %d: used %d, allowed are %d", seed, used, allowed)
			}
			now = now.Add(wait + time.Duration(rng.Int64N(int64(100*time.Millisecond))))
		}
		for range 100 {
			now = now.Add(2 * time.Second)
			if wait := b.Charge(now, rate, rate); wait > 0 {
				t.Fatalf("seed %d: a module within its rate waits %v", seed, wait)
			}
		}
	}
}

// A rate that is next to nothing waits long, whatever was used.
func TestBucket_SmallRate(t *testing.T) {
	var b Bucket
	if wait := b.Charge(time.Unix(1_000_000, 0), 1, math.MaxInt64); wait != maxWait {
		t.Errorf("waits %v, want %v", wait, maxWait)
	}
}

// A clock that goes back neither gives nor takes fuel.
func TestBucket_ClockGoesBack(t *testing.T) {
	var b Bucket
	now := time.Unix(1_000_000, 0)
	b.Charge(now, 100, 150)
	if wait := b.Charge(now.Add(-time.Hour), 100, 0); wait != 500*time.Millisecond {
		t.Errorf("waits %v, want 500ms", wait)
	}
}
