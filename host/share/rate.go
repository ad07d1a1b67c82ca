// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync"
	"time"
)

// maxWait is longer than any call.
const maxWait = 365 * 24 * time.Hour

// Bucket is a token bucket. It holds the tokens of one second, and is full at the start.
// The zero Bucket is ready for use, by any number of goroutines.
type Bucket struct {
	mu sync.Mutex
	// used are the tokens that have not come back by the time at; guarded by mu.
	used float64
	at   time.Time
}

// pass advances the time; the caller holds mu.
func (b *Bucket) pass(now time.Time, perSecond int64) {
	if passed := now.Sub(b.at); passed > 0 {
		b.used = max(0, b.used-passed.Seconds()*float64(perSecond))
		b.at = now
	}
}

// Try takes n tokens if there are so many.
func (b *Bucket) Try(now time.Time, perSecond, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(now, perSecond)
	if b.used+float64(n) > float64(perSecond) {
		return false
	}
	b.used += float64(n)
	return true
}

// Charge takes n tokens, even if there are fewer, and returns how long the caller must
// wait until the missing ones have come back.
func (b *Bucket) Charge(now time.Time, perSecond, n int64) time.Duration {
	wait, _ := b.Reserve(now, perSecond, n, maxWait)
	return wait
}

// Reserve is Charge, but takes nothing and returns false if the wait is longer than most.
func (b *Bucket) Reserve(now time.Time, perSecond, n int64, most time.Duration) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rate := float64(perSecond)
	b.pass(now, perSecond)
	missing := b.used + float64(n) - rate
	wait := time.Duration(min(max(0, missing)/rate*float64(time.Second), float64(maxWait)))
	if wait > most {
		return 0, false
	}
	b.used += float64(n)
	return wait, true
}

// GiveBack returns n tokens that were not used.
func (b *Bucket) GiveBack(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = max(0, b.used-float64(n))
}
