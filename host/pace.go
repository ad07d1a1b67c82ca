package host

import "time"

// What a slice of fuel is. It bounds how long a guest that spins holds up the
// garbage collector, the other guests and its own end. How long a unit of fuel
// takes depends on the guest, by a factor of a hundred.
const (
	sliceTime  = 250 * time.Microsecond // aimed at
	firstSlice = 250_000                // units of fuel, before anything is known
	minSlice   = 50_000
	maxSlice   = 8_000_000
	// freeSlices are those of each call for which it waits for nobody.
	freeSlices = 4
)

// pace finds out how much fuel a slice should be.
type pace struct {
	slice int64
	fixed bool
}

// newPace returns a pace of fixed slices, or one that learns where they are 0.
func newPace(fixed int64) pace {
	if fixed > 0 {
		return pace{fixed, true}
	}
	return pace{firstSlice, false}
}

// learn takes how long the last slice took. What else the machine did, and
// operations that waited, are in there too: so each time it goes down to the
// half at most.
func (p *pace) learn(took time.Duration) {
	if p.fixed {
		return
	}
	next := 2 * p.slice
	if took > 0 {
		next = min(next, int64(float64(p.slice)*float64(sliceTime)/float64(took)))
	}
	p.slice = min(max(next, p.slice/2, minSlice), maxSlice)
}
