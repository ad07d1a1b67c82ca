package host

import "time"

// Sizes of a slice of fuel. It bounds how long a guest that spins holds up the
// garbage collector, the other guests and its own end. How long a unit of fuel
// takes depends on the guest, by a factor of a hundred.
const (
	sliceTime  = 250 * time.Microsecond // aimed at
	firstSlice = 250_000                // units of fuel, before anything is known
	minSlice   = 50_000
	maxSlice   = 8_000_000
	// freeSlices is the number of slices of each call without waiting.
	freeSlices = 4
)

// sliceSizer finds out how much fuel a slice should be.
type sliceSizer struct {
	slice int64
	fixed bool
}

// newSliceSizer returns a pace of fixed slices, or one that learns where they are 0.
func newSliceSizer(fixed int64) sliceSizer {
	if fixed > 0 {
		return sliceSizer{fixed, true}
	}
	return sliceSizer{firstSlice, false}
}

// worth is the fuel of a slice that takes so long.
func (p *sliceSizer) worth(took time.Duration) int64 {
	return p.slice * int64(min(took, time.Minute)) / int64(sliceTime)
}

// learn takes how long the last slice took. This time includes other work of
// the machine and waiting operations, so the size at most halves each time.
func (p *sliceSizer) learn(took time.Duration) {
	if p.fixed {
		return
	}
	next := 2 * p.slice
	if took > 0 {
		next = min(next, int64(float64(p.slice)*float64(sliceTime)/float64(took)))
	}
	p.slice = min(max(next, p.slice/2, minSlice), maxSlice)
}
