// SPDX-License-Identifier: Apache-2.0

package share

import "time"

// Sizes of a slice of fuel. A slice bounds how long a spinning guest delays the garbage
// collector, the other guests and its own end. The time that a unit of fuel takes differs
// between guests by a factor of a hundred.
const (
	sliceTime  = 250 * time.Microsecond // the aim
	firstSlice = 250_000                // units of fuel, before anything is known
	minSlice   = 50_000
	maxSlice   = 8_000_000
	// FreeSlices is the number of slices that each call gets without waiting.
	FreeSlices = 4
)

// SliceSizer learns how much fuel a slice should have.
type SliceSizer struct {
	size  int64
	fixed bool
}

// NewSliceSizer returns a sizer that learns, or one with fixed slices if that is not 0.
func NewSliceSizer(fixed int64) SliceSizer {
	if fixed > 0 {
		return SliceSizer{fixed, true}
	}
	return SliceSizer{firstSlice, false}
}

// Size returns the fuel of the next slice.
func (p *SliceSizer) Size() int64 { return p.size }

// Worth returns the fuel of a slice of this duration.
func (p *SliceSizer) Worth(took time.Duration) int64 {
	return p.size * int64(min(took, time.Minute)) / int64(sliceTime)
}

// Learn takes the duration of the last slice. It includes other work of the machine and
// waiting operations, so the size at most halves each time.
func (p *SliceSizer) Learn(took time.Duration) {
	if p.fixed {
		return
	}
	next := 2 * p.size
	if took > 0 {
		next = min(next, int64(float64(p.size)*float64(sliceTime)/float64(took)))
	}
	p.size = min(max(next, p.size/2, minSlice), maxSlice)
}
