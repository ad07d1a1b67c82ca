// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"encoding/binary"
	"math/rand"
)

// A source of math/rand has 607 numbers. Each new number is the sum of two earlier ones
// and replaces the oldest, from the middle downwards.
const (
	words  = 607
	lag    = 273
	middle = words - lag - 1
	// sample is the position of the numbers that are compared first, because they are
	// replaced last.
	sample, sampleWords = middle + 1, 4
)

// units are the units of the times with which programs seed sources, in nanoseconds.
var units = [...]int64{1, 1e3, 1e6, 1e9}

// findSources returns the places of sources that were seeded with a time.
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

// alike reports whether at least half of the numbers are still those of the seed.
func alike(memory, want []byte) bool {
	n := 0
	for i := 0; i < len(want); i += 8 {
		if bytes.Equal(memory[i:i+8], want[i:i+8]) {
			n++
		}
	}
	return n >= words/2
}

// source returns the numbers of a source that has just been seeded. They follow backwards
// from the numbers that it yields.
func source(seed int64) []byte {
	src := rand.NewSource(seed).(rand.Source64) //nolint:gosec // not for secrets: to find one
	var y [2 * words]uint64                     // the second half are those that it yields
	for i := range words {
		y[words+i] = src.Uint64()
	}
	for n := words - 1; n >= 0; n-- {
		y[n] = y[words+n] - y[words+n-lag]
	}
	out := make([]byte, 8*words)
	for p := range words {
		n := (middle - p + words) % words // the step that replaces the number
		binary.LittleEndian.PutUint64(out[8*p:], y[n])
	}
	return out
}
