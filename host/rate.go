package host

import (
	"sync"
	"time"
)

// maxWait is longer than any call.
const maxWait = 365 * 24 * time.Hour

// bucket is a token bucket of what comes back at a rate: of one second's, which
// is there at the start. The zero value is full.
type bucket struct {
	mu sync.Mutex
	// used is what time has not made good yet, at the time of at; guarded by mu.
	used float64
	at   time.Time
}

// pass notes the time; the caller holds mu.
func (b *bucket) pass(now time.Time, perSecond int64) {
	if passed := now.Sub(b.at); passed > 0 {
		b.used = max(0, b.used-passed.Seconds()*float64(perSecond))
		b.at = now
	}
}

// try takes n, where there is so much.
func (b *bucket) try(now time.Time, perSecond, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(now, perSecond)
	if b.used+float64(n) > float64(perSecond) {
		return false
	}
	b.used += float64(n)
	return true
}

// charge takes n, also where there is less, and returns how long its user has to
// wait: as long as the rate needs to make good what is missing.
func (b *bucket) charge(now time.Time, perSecond, n int64) time.Duration {
	wait, _ := b.reserve(now, perSecond, n, maxWait)
	return wait
}

// reserve is charge, but where the wait is longer than most it takes nothing and
// returns false.
func (b *bucket) reserve(now time.Time, perSecond, n int64, most time.Duration) (time.Duration, bool) {
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

// giveBack returns n that were not used.
func (b *bucket) giveBack(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = max(0, b.used-float64(n))
}
