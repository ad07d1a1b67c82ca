// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
)

// Get returns the bytes passed to Put, however often it is called, and no file is visible.
func TestPut_IsWhatOneGets(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, minSize - 1, minSize, 3*minSize + 7} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		kept := Put(bytes.Clone(want))
		if inFile := kept.file != nil; inFile != (n >= minSize) {
			t.Errorf("%d bytes: in a file: %v", n, inFile)
		}
		for range 2 {
			if got, err := kept.Get(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: %v, %d other ones", n, err, len(got))
			}
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files: %v, %v", files, err)
	}
}

// Bytes are stored once as long as they are referenced, and stored again for later callers.
func TestShared_KeepsTheSameBytesOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s Shared
	b := make([]byte, minSize)
	first := s.Put("a", b)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if s.Put("a", bytes.Clone(b)) != first {
				t.Error("the same bytes are kept twice")
			}
			if s.Put("b", b) == first {
				t.Error("bytes of another digest are the same")
			}
		})
	}
	wg.Wait()
	runtime.KeepAlive(first)
	for range 3 { // unreferenced bytes are forgotten
		runtime.GC()
	}
	if got, err := s.Put("a", b).Get(); err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if len(s.known) != 1 {
		t.Errorf("%d digests are known, want 1", len(s.known))
	}
}

// If no file can be created, the bytes stay in memory.
func TestPut_NeedsNoFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	kept := Put(make([]byte, minSize))
	if got, err := kept.Get(); kept.file != nil || err != nil || len(got) != minSize {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// The bytes are not on the heap.
func TestPut_FreesTheMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const size = 64 << 20
	before := heap()
	kept := Put(make([]byte, size))
	if grown := heap() - before; kept.file == nil || grown > size/2 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(kept)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is smaller
}
