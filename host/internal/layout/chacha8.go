// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"
	"math/rand/v2"
)

// Go's runtime seeds a ChaCha8 generator with 32 random bytes from the host. Some of the
// first numbers of that generator seed the one that maps, select and math/rand use. The
// second generator takes a new seed from its own output after perSeed numbers. Its state
// is the last block of numbers, followed by the seed.
const (
	seedSize  = 32
	blockSize = 256
	// perSeed is how many numbers one seed yields: four blocks, without the bytes that
	// become the next seed.
	perSeed = 4*blockSize/8 - seedSize/8
	// maxSkip bounds how many numbers precede the seed, and maxSeeds how many seeds start
	// code uses up. Both are far more than Go needs.
	maxSkip  = 32
	maxSeeds = 2048
)

// findChaCha8 returns the place of the generator that was seeded with random bytes.
func findChaCha8(memory []byte, random [seedSize]byte) []Place {
	for _, seeds := range [...]int{64, maxSeeds} { // the second takes long, and is rarely needed
		if places := scan(memory, candidates(random, seeds)); len(places) > 0 {
			return places
		}
	}
	return nil
}

// candidates returns the seeds that the generator may have now, by their first word.
func candidates(root [seedSize]byte, each int) map[uint64][seedSize]byte {
	out := make(map[uint64][seedSize]byte, maxSkip*each)
	g := rand.NewChaCha8(root)
	var first []byte
	for range maxSkip + seedSize/8 {
		first = binary.LittleEndian.AppendUint64(first, g.Uint64())
	}
	for skip := range maxSkip {
		g := rand.NewChaCha8([seedSize]byte(first[8*skip:]))
		for range each {
			g.Uint64() // the next seed takes its place with its first number
			seed := seedOf(g)
			out[binary.LittleEndian.Uint64(seed[:])] = seed
			for range perSeed - 1 {
				g.Uint64()
			}
		}
	}
	return out
}

// seedOf returns the seed that a generator has now.
func seedOf(g *rand.ChaCha8) [seedSize]byte {
	b, _ := g.MarshalBinary() // never fails: a header, a count and the seed
	return [seedSize]byte(b[len(b)-seedSize:])
}

// scan finds states in memory.
func scan(memory []byte, seeds map[uint64][seedSize]byte) (places []Place) {
	var may [1 << 16]bool // the last bits exclude most words
	for word := range seeds {
		may[uint16(word)] = true //nolint:gosec // the last bits
	}
	for at := blockSize; at+seedSize <= len(memory); at += 8 {
		word := binary.LittleEndian.Uint64(memory[at:])
		if !may[uint16(word)] { //nolint:gosec // as above
			continue
		}
		seed, ok := seeds[word]
		if ok && [seedSize]byte(memory[at:]) == seed && isBlock([blockSize]byte(memory[at-blockSize:]), seed) {
			places = append(places, Place{at - blockSize, blockSize + seedSize})
		}
	}
	return places
}

// isBlock reports whether the numbers are a block of the seed, which means that the state
// has the assumed layout.
func isBlock(block [blockSize]byte, seed [seedSize]byte) bool {
	g := rand.NewChaCha8(seed)
	for range 4 {
		same := true
		for i := range blockSize/8 - seedSize/8 {
			same = binary.LittleEndian.Uint64(block[8*i:]) == g.Uint64() && same
		}
		if same {
			return true
		}
		for range seedSize / 8 { // at the end of the last block they are the next seed, which does not matter
			g.Uint64()
		}
	}
	return false
}
