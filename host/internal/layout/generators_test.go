// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"
	"errors"
	mathrand "math/rand"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// state is that of Go's generator, as its source lays it out.
type state struct {
	buf     [32]uint64
	seed    [4]uint64
	i, n, c uint32
}

// chacha8 is the state behind a generator of math/rand/v2: its first field.
func chacha8(g *rand.ChaCha8) *state { return (*state)(unsafe.Pointer(g)) }

// memoryWith is a memory of noise with some bytes in it.
func memoryWith(b []byte, at int) []byte {
	memory := make([]byte, 1<<18)
	for i := range memory {
		memory[i] = byte(rand.Uint32())
	}
	copy(memory[at:], b)
	return memory
}

func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// A generator that is seeded as Go's runtime does it is found, however many numbers it
// has given, and gives others once other bytes are in its place.
func TestFind_GoGenerator(t *testing.T) {
	for _, drawn := range []int{0, 1, 31, 32, 100, 123, 124, 125, 5000, 100_000} {
		var root [32]byte
		for i := range root {
			root[i] = byte(rand.Uint32())
		}
		boot := rand.NewChaCha8(root)
		for range rand.IntN(8) {
			boot.Uint64()
		}
		var seed []byte
		for range 4 {
			seed = binary.LittleEndian.AppendUint64(seed, boot.Uint64())
		}
		g := rand.NewChaCha8([32]byte(seed))
		for range drawn {
			g.Uint64()
		}
		s := chacha8(g)
		const at = 4096 * 3
		memory := memoryWith(bytesOf(s), at)
		var given Given
		given.AddRandom(root[:])
		places, err := Find(memory, &given)
		if err != nil || len(places) != 1 || places[0] != (Place{at, 288}) {
			t.Fatalf("%d drawn: %v, %v", drawn, places, err)
		}
		other := *s
		copy(bytesOf(&other), memoryWith(nil, 0)[:places[0].Len])
		if other.i != s.i || other.n != s.n || other.c != s.c || other.seed == s.seed {
			t.Errorf("the place is not that of numbers and seed")
		}
		for _, more := range []int{1, 16, 32, 5000} { // a key of the program, for example
			again := given
			again.AddRandom(make([]byte, more))
			if places, err := Find(memory, &again); len(places) > 0 || !errors.Is(err, ErrUnknown) {
				t.Errorf("%d drawn, and %d bytes for the program: %v, %v", drawn, more, places, err)
			}
		}
	}
}

// A source that is seeded with the time is found, whatever the unit, until it has given
// hundreds of numbers.
func TestFind_SourceOfTheTime(t *testing.T) {
	const now = 1_790_000_000_123_456_789
	for i, drawn := range []int{0, 1, 100, 300} {
		src := mathrand.NewSource(now / units[i])
		for range drawn {
			src.Int63()
		}
		type rng struct {
			_, _ int // tap and feed
			vec  [words]int64
		}
		s := *(**rng)(unsafe.Add(unsafe.Pointer(&src), unsafe.Sizeof(uintptr(0))))
		const at = 1 << 12
		places, err := Find(memoryWith(bytesOf(&s.vec), at), &Given{times: []int64{5, now}})
		if err != nil || len(places) != 1 || places[0] != (Place{at, 8 * words}) {
			t.Errorf("unit %d, %d drawn: %v, %v", units[i], drawn, places, err)
		}
	}
}

// Without either, there is nothing to find. Random bytes that are not the seed of a generator
// are an error, whatever their number.
func TestFind_NothingKnown(t *testing.T) {
	memory := memoryWith(nil, 0)
	if places, err := Find(memory, &Given{times: []int64{1}}); len(places) > 0 || err != nil {
		t.Errorf("%v, %v", places, err)
	}
	for _, size := range []int{1, seedSize, 5000} {
		var g Given
		g.AddRandom(memory[:size])
		if places, err := Find(memory, &g); len(places) > 0 || !errors.Is(err, ErrUnknown) {
			t.Errorf("%d bytes: %v, %v", size, places, err)
		}
	}
}
