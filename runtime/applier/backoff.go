// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"cmp"
	"errors"
	"math"
	"time"
)

// Defaults of Backoff (rule 19).
const (
	DefaultBackoffInitial = 250 * time.Millisecond
	DefaultBackoffMax     = 5 * time.Minute
	DefaultBackoffJitter  = 0.2
)

// Backoff is the host's delay before an object is retried: Initial after the first failed run, doubling up to Max. The zero value has the
// defaults.
type Backoff struct {
	Initial, Max time.Duration
	// Jitter is the random part of the delay: with 0.2, the delay is between 80 and 120 percent, so that objects that failed together are
	// not retried together. A negative value turns it off.
	Jitter float64
}

func (b Backoff) validate() error {
	if b.Initial < 0 || b.Max < 0 || b.Jitter > 1 {
		return errors.New("backoff: want initial and max of at least 0, and a jitter of at most 1")
	}
	return nil
}

// Delay returns the delay after the given number of consecutive failed runs. r is a random number in [0, 1). The result exceeds Max by no
// more than Jitter.
func (b Backoff) Delay(attempt int, r float64) time.Duration {
	b.Initial = cmp.Or(b.Initial, DefaultBackoffInitial)
	b.Max = cmp.Or(b.Max, DefaultBackoffMax)
	b.Jitter = cmp.Or(b.Jitter, DefaultBackoffJitter)
	d := math.Min(float64(b.Initial)*math.Pow(2, float64(max(attempt, 1)-1)), float64(b.Max))
	if b.Jitter > 0 {
		d *= 1 + b.Jitter*(2*r-1)
	}
	return time.Duration(math.Min(d, math.MaxInt64/2))
}
