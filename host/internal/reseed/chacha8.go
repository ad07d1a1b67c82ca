package reseed

import (
	"encoding/binary"
	"math/rand/v2"
)

// Go's runtime seeds a ChaCha8 generator with the 32 random bytes that it asks for.
// Some of the first numbers of that seed the one that maps, select and math/rand draw
// from. That one takes a new seed from its own output after each so many numbers. Its
// state has the last block of numbers, and behind it the seed.
const (
	seedSize  = 32
	blockSize = 256
	// perSeed is how many numbers there are of one seed: four blocks without what is
	// the next seed.
	perSeed = 4*blockSize/8 - seedSize/8
	// maxSkip is how many numbers are drawn before the seed, and maxSeeds how many seeds
	// start code uses up; both are far more than Go does.
	maxSkip  = 32
	maxSeeds = 2048
)

// findChaCha8 returns the places of states that come from random bytes.
func findChaCha8(memory []byte, random [][]byte) []Place {
	for _, b := range random {
		if len(b) != seedSize {
			continue
		}
		for _, seeds := range [...]int{64, maxSeeds} { // the second takes long, and is seldom needed
			if places := scan(memory, candidates([seedSize]byte(b), seeds)); len(places) > 0 {
				return places
			}
		}
	}
	return nil
}

// candidates are seeds that the generator may have now, by their first word.
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

// seedOf is the seed that a generator has now.
func seedOf(g *rand.ChaCha8) [seedSize]byte {
	b, _ := g.MarshalBinary() // never fails: a header, a count and the seed
	return [seedSize]byte(b[len(b)-seedSize:])
}

// scan finds states in memory.
func scan(memory []byte, seeds map[uint64][seedSize]byte) (places []Place) {
	var may [1 << 16]bool // most words are none, by their last bits
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

// isBlock reports whether numbers are a block of a seed: then the state is laid out as
// it is known to be.
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
		for range seedSize / 8 { // of the last block they are the next seed, which is no matter
			g.Uint64()
		}
	}
	return false
}
