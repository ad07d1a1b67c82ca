// Package decay averages what happens over about the last minute, without a timer.
package decay

import (
	"math"
	"time"
)

// Time is the time over which an average is made: what is that long ago counts 1/e.
const Time = time.Minute

// Left returns what is left of an average after so long.
func Left(since time.Duration) float64 {
	part := float64(since) / float64(Time)
	if part > 1e-4 {
		return math.Exp(-part)
	}
	return 1 - part // near enough for what is so short
}

// Rate is how much of something there has lately been, each second. The zero value
// is nothing. It is not safe for concurrent use.
type Rate struct {
	at        time.Time
	perSecond float64
}

// Add counts n that have come now.
func (r *Rate) Add(now time.Time, n float64) {
	r.perSecond = r.Read(now) + n/Time.Seconds()
	if now.After(r.at) {
		r.at = now
	}
}

// Read returns the rate as it is now.
func (r *Rate) Read(now time.Time) float64 {
	since := now.Sub(r.at)
	if r.at.IsZero() || since <= 0 {
		return r.perSecond
	}
	return r.perSecond * Left(since)
}
