package host

import (
	"sync"
	"time"
)

// fuelRate bounds the fuel of one module by time. It is a token bucket of one
// second's fuel that may go below zero: fuel is paid for when it has been used.
type fuelRate struct {
	mu     sync.Mutex
	bucket bucket // guarded by mu
}

// charge takes fuel and returns how long whoever used it has to wait.
func (r *fuelRate) charge(now time.Time, perSecond, fuel int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bucket.charge(now, perSecond, fuel)
}

// maxWait is longer than any call.
const maxWait = 365 * 24 * time.Hour

// bucket is a token bucket. The zero value is full.
type bucket struct {
	// used is the fuel that time has not made good yet, at the time of at.
	used float64
	at   time.Time
}

// charge takes fuel. The first second's fuel is free of waiting; beyond it the
// wait is as long as the rate needs to make good what is missing.
func (b *bucket) charge(now time.Time, perSecond, fuel int64) time.Duration {
	rate := float64(perSecond)
	if passed := now.Sub(b.at); passed > 0 {
		b.used = max(0, b.used-passed.Seconds()*rate)
		b.at = now
	}
	b.used += float64(fuel)
	if b.used <= rate {
		return 0
	}
	return time.Duration(min((b.used-rate)/rate*float64(time.Second), float64(maxWait)))
}
