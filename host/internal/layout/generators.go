// SPDX-License-Identifier: Apache-2.0

package layout

import "errors"

// Given holds the random bytes and times that start code has received.
type Given struct {
	requests int            // for random bytes
	seed     [seedSize]byte // the bytes of the first request, if it was for so many
	size     int            // of the first request
	times    []int64        // nanoseconds of Unix time
}

// maxTimes bounds the times of Given. Generators that were seeded with later ones are not
// found.
const maxTimes = 64

// AddRandom records the answer to a request for random bytes.
func (g *Given) AddRandom(b []byte) {
	if g.requests++; g.requests == 1 {
		g.size = len(b)
		copy(g.seed[:], b)
	}
}

// AddTime records a time.
func (g *Given) AddTime(ns int64) {
	if len(g.times) < maxTimes {
		g.times = append(g.times, ns)
	}
}

// Place is a part of memory whose bytes may be replaced by any others: the state of a
// generator.
type Place struct{ At, Len int }

// ErrUnknown reports that a guest received random bytes other than the seed of a generator
// that was found. They may be a key or a token, which no two instances may have in common.
var ErrUnknown = errors.New("its start code asks for random bytes that are not the seed of Go's generator")

// ErrDisabled is the error of Find while the assumptions of this package are disabled.
var ErrDisabled = errors.New("random generators are not looked for in its memory")

// Find returns the states of the random generators in a guest's memory. All random bytes
// that the guest received must be the seed of one of them.
func Find(memory []byte, given *Given) (places []Place, err error) {
	if disabled.Load() {
		return nil, ErrDisabled
	}
	if given.requests > 0 {
		if given.requests == 1 && given.size == seedSize {
			places = findChaCha8(memory, given.seed)
		}
		if len(places) == 0 {
			return nil, ErrUnknown
		}
	}
	return append(places, findSources(memory, given.times)...), nil
}
