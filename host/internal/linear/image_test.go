// SPDX-License-Identifier: Apache-2.0

package linear

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Memories of one image have its content, and change nothing of each other, whether they
// had bytes before, whatever they write and in which order they are loaded again; they
// can grow, and what is new is zero.
func TestImage_MemoriesAreAlike(t *testing.T) {
	t.Run("own", func(t *testing.T) { memoriesAreAlike(t, NewImage) })
	t.Run("copied", func(t *testing.T) { memoriesAreAlike(t, newCopy) })
}

func memoriesAreAlike(t *testing.T, newImage func([]byte) (*Image, error)) {
	t.Helper()
	content := make([]byte, 3*page+4096+17)
	for range 200 {
		content[rand.IntN(len(content)-page)] = byte(1 + rand.IntN(255))
	}
	copy(content[2*page:], make([]byte, page)) // a hole
	im, err := newImage(content)
	if err != nil {
		t.Fatal(err)
	}
	if im.Size() != len(content) || im.Resident() > int64(len(content)-page+2*pageSize) {
		t.Errorf("size %d, resident %d", im.Size(), im.Resident())
	}
	memories := make([]*Memory, 4)
	views := make([][]byte, 4)
	want := make([][]byte, 4)
	load := func(i int) {
		t.Helper()
		if err := memories[i].Load(im); err != nil {
			t.Fatal(err)
		}
		want[i] = bytes.Clone(content)
	}
	for i := range memories {
		memories[i] = reserveFor(t, 8*page)
		if i%2 == 0 { // the others have no bytes yet
			if _, err := memories[i].Grow(uint64(len(content))); err != nil {
				t.Fatal(err)
			}
		}
		load(i)
		if views[i], err = memories[i].Grow(uint64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	if small := reserveFor(t, 3*page); small.Load(im) == nil {
		t.Error("a memory took an image that is larger than it may become")
	}
	for range 2000 {
		i := rand.IntN(len(memories))
		if rand.IntN(50) == 0 {
			load(i)
		}
		at, b := rand.IntN(len(content)), byte(rand.Uint32())
		views[i][at], want[i][at] = b, b
	}
	im.Close() // those that are there stay
	for i := range memories {
		if !bytes.Equal(views[i], want[i]) {
			t.Errorf("memory %d is not what was written", i)
		}
		b, err := memories[i].Grow(6 * page)
		if err != nil || !bytes.Equal(b[:len(content)], want[i]) || !isZero(b[len(b)-pageSize:]) {
			t.Errorf("memory %d has not grown: %v", i, err)
		}
		if err := memories[i].Load(im); err == nil {
			t.Errorf("memory %d took an image of another size", i)
		}
	}
}

// newCopy makes an image as where there are no files in memory.
func newCopy(content []byte) (*Image, error) {
	var s copySource
	if err := s.create(len(content)); err != nil {
		return nil, err
	}
	err := s.write(content, 0)
	return copied(s, len(content)), err
}

func BenchmarkImage_Load(b *testing.B) {
	content := bytes.Repeat([]byte{1}, 3<<20)
	im, err := NewImage(content)
	if err != nil {
		b.Fatal(err)
	}
	m := reserveFor(b, 4<<20)
	view, err := m.Grow(uint64(len(content)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Load(im); err != nil {
			b.Fatal(err)
		}
		view[0] = 2
	}
}
