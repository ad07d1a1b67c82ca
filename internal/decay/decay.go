// SPDX-License-Identifier: Apache-2.0

// Package decay computes moving averages over about the last minute, without a timer.
package decay

import (
	"math"
	"time"
)

// Time is the time constant of the averages: an event that long ago has a weight of 1/e.
const Time = time.Minute

// Left returns the weight of an event after the given time.
func Left(since time.Duration) float64 {
	part := float64(since) / float64(Time)
	if part > 1e-4 {
		return math.Exp(-part)
	}
	return 1 - part // accurate enough for short times
}

// Rate is a moving average of an amount per second. The zero value is a rate of zero. It is not safe for concurrent use.
type Rate struct {
	at        time.Time
	perSecond float64
}

// Add adds an amount n at the time now.
func (r *Rate) Add(now time.Time, n float64) {
	r.perSecond = r.Read(now) + n/Time.Seconds()
	if now.After(r.at) {
		r.at = now
	}
}

// Read returns the current rate.
func (r *Rate) Read(now time.Time) float64 {
	since := now.Sub(r.at)
	if r.at.IsZero() || since <= 0 {
		return r.perSecond
	}
	return r.perSecond * Left(since)
}
