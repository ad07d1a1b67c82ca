package reseed

import (
	"bytes"
	"encoding/binary"
	"math/rand"
)

// A source of math/rand is 607 numbers; each new one is the sum of two earlier ones
// and takes the place of the oldest, from the middle on downwards.
const (
	words  = 607
	lag    = 273
	middle = words - lag - 1
	// sample is where numbers are compared first: the ones that are replaced last.
	sample, sampleWords = middle + 1, 4
)

// units are what programs seed sources with: nanoseconds, or fewer.
var units = [...]int64{1, 1e3, 1e6, 1e9}

// findSources returns the places of sources that are seeded with a time.
func findSources(memory []byte, times []int64) (places []Place) {
	for _, t := range times {
		for _, unit := range units {
			places = append(places, findSource(memory, t/unit)...)
		}
	}
	return places
}

func findSource(memory []byte, seed int64) (places []Place) {
	want := source(seed)
	pattern := want[8*sample : 8*(sample+sampleWords)]
	for from := 0; ; {
		i := bytes.Index(memory[from:], pattern)
		if i < 0 {
			return places
		}
		from += i + 1
		at := from - 1 - 8*sample
		if at >= 0 && at+len(want) <= len(memory) && alike(memory[at:at+len(want)], want) {
			places = append(places, Place{at, len(want)})
		}
	}
}

// alike reports whether half of the numbers are those that were there first: not more
// of them were replaced.
func alike(memory, want []byte) bool {
	n := 0
	for i := 0; i < len(want); i += 8 {
		if bytes.Equal(memory[i:i+8], want[i:i+8]) {
			n++
		}
	}
	return n >= words/2
}

// source is a source that has just been seeded. Its numbers follow from those that it
// gives, backwards.
func source(seed int64) []byte {
	src := rand.NewSource(seed).(rand.Source64) //nolint:gosec // not for secrets: to find one
	var y [2 * words]uint64                     // the second half are those that it gives
	for i := range words {
		y[words+i] = src.Uint64()
	}
	for n := words - 1; n >= 0; n-- {
		y[n] = y[words+n] - y[words+n-lag]
	}
	out := make([]byte, 8*words)
	for p := range words {
		n := (middle - p + words) % words // the step that replaces it
		binary.LittleEndian.PutUint64(out[8*p:], y[n])
	}
	return out
}
