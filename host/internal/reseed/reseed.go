// Package reseed finds the random generators of a guest in its memory.
//
// Instances that are made of one image have the same memory, and so the same
// generators in the same state: all would draw the same names and delays. The host
// knows what it has answered to the start code when that asked for random bytes and
// for the time. A generator of Go that was seeded with that has a state that follows
// from it, of 32 bytes and more that occur nowhere else. Where such a state lies in
// memory, any other bytes are a state too.
package reseed

import "errors"

// Given is what start code was given.
type Given struct {
	Random [][]byte // for each time that it asked
	Time   []int64  // nanoseconds of Unix time
	more   bool     // random bytes that are not remembered
}

// Bounds of what is remembered: more is not looked for.
const (
	maxAsked = 64
	maxBytes = 4 << 10
)

// AddRandom notes random bytes.
func (g *Given) AddRandom(b []byte) {
	if len(g.Random) < maxAsked && len(b) <= maxBytes {
		g.Random = append(g.Random, append([]byte(nil), b...))
	} else {
		g.more = true
	}
}

// AddTime notes a time.
func (g *Given) AddTime(ns int64) {
	if len(g.Time) < maxAsked {
		g.Time = append(g.Time, ns)
	}
}

// Place is a part of memory that may have any bytes: a generator's state.
type Place struct{ At, Len int }

// ErrUnknown says that a guest was given random bytes, and that nobody knows what it
// has made of them.
var ErrUnknown = errors.New("its start code asks for random bytes, and they are not the seed of Go's generator")

// Find returns the states of generators in memory.
func Find(memory []byte, given Given) ([]Place, error) {
	places := findChaCha8(memory, given.Random)
	if len(places) == 0 && (given.more || len(given.Random) > 0) {
		return nil, ErrUnknown
	}
	return append(places, findSources(memory, given.Time)...), nil
}
