// SPDX-License-Identifier: Apache-2.0

package layout

import "errors"

// Given holds the random bytes and times that start code has received.
type Given struct {
	Random [][]byte // one for each request
	Time   []int64  // nanoseconds of Unix time
	more   bool     // it received random bytes that are not in Random
}

// Bounds of Given. Generators that were seeded with anything beyond are not found.
const (
	maxAsked = 64
	maxBytes = 4 << 10
)

// AddRandom records random bytes.
func (g *Given) AddRandom(b []byte) {
	if len(g.Random) < maxAsked && len(b) <= maxBytes {
		g.Random = append(g.Random, append([]byte(nil), b...))
	} else {
		g.more = true
	}
}

// AddTime records a time.
func (g *Given) AddTime(ns int64) {
	if len(g.Time) < maxAsked {
		g.Time = append(g.Time, ns)
	}
}

// Place is a part of memory whose bytes may be replaced by any others: the state of a
// generator.
type Place struct{ At, Len int }

// ErrUnknown reports that a guest received random bytes and that its memory does not show
// how it used them.
var ErrUnknown = errors.New("its start code asks for random bytes, and they are not the seed of Go's generator")

// ErrDisabled is the error of Find while the assumptions of this package are disabled.
var ErrDisabled = errors.New("random generators are not looked for in its memory")

// Find returns the states of the random generators in a guest's memory.
func Find(memory []byte, given Given) ([]Place, error) {
	if disabled.Load() {
		return nil, ErrDisabled
	}
	places := findChaCha8(memory, given.Random)
	if len(places) == 0 && (given.more || len(given.Random) > 0) {
		return nil, ErrUnknown
	}
	return append(places, findSources(memory, given.Time)...), nil
}
