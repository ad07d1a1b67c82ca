// SPDX-License-Identifier: Apache-2.0

package linear

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const page = 64 << 10

func reserveFor(tb testing.TB, most uint64) *Memory {
	tb.Helper()
	m, err := Reserve(most)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.Free)
	return &m
}

// A memory that grows page by page keeps its address and what was written, and
// what is new is zero.
func TestMemory_GrowingMovesNothing(t *testing.T) {
	m := reserveFor(t, 64*page)
	var first *byte
	for n := uint64(1); n <= 64; n++ {
		b, err := m.Grow(n * page)
		if err != nil {
			t.Fatal(err)
		}
		if uint64(len(b)) != n*page || cap(b) != len(b) {
			t.Fatalf("%d pages are %d bytes long, with room for %d", n, len(b), cap(b))
		}
		if first == nil {
			first = &b[0]
		}
		if runtime.GOOS == "linux" && first != &b[0] {
			t.Fatalf("it has moved at %d pages", n)
		}
		for i := range n - 1 {
			if b[i*page] != byte(i+1) {
				t.Fatalf("page %d has %d", i, b[i*page])
			}
		}
		if b[(n-1)*page] != 0 || b[n*page-1] != 0 {
			t.Fatalf("page %d is not zero", n-1)
		}
		b[(n-1)*page] = byte(n)
	}
	if _, err := m.Grow(65 * page); err == nil || !strings.Contains(err.Error(), "more than the 4194304 that are reserved") {
		t.Errorf("one page more: %v", err)
	}
}

func TestMemory_NoneAtAll(t *testing.T) {
	var zero Memory
	for _, m := range []*Memory{&zero, reserveFor(t, 0), reserveFor(t, page)} {
		b, err := m.Grow(0)
		if err != nil || b == nil || len(b) != 0 {
			t.Errorf("%v, %v", b, err)
		}
		m.Free()
		m.Free()
	}
	if _, err := Reserve(math.MaxUint64); err == nil {
		t.Error("all addresses of 64 bits are not there")
	}
}

// What the system refuses is an error that names its call, and changes nothing.
func TestMemory_SystemRefuses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: address space has other bounds than on Linux")
	}
	_, err := Reserve(1 << 50)
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "vm.max_map_count") {
		t.Errorf("got %v", err)
	}
}

// Freed memory is the system's at once, without a garbage collection: the
// process is no larger after a gigabyte than after a page.
func TestMemory_FreedIsGivenBackAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	const size, rounds = 16 << 20, 32
	before := resident(t)
	for range rounds {
		m := reserveFor(t, 256<<20)
		if grown := resident(t) - before; grown > size {
			t.Fatalf("%d bytes are resident of what nobody has touched", grown)
		}
		b, err := m.Grow(size)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < size; i += 4096 {
			b[i] = 1
		}
		if grown := resident(t) - before; grown < size/2 {
			t.Fatalf("%d bytes are resident of the %d that were touched", grown, size)
		}
		m.Free()
	}
	if grown := resident(t) - before; grown > size {
		t.Errorf("%d bytes did not come back", grown)
	}
}

// resident is the memory of this process that is in the machine's, in bytes.
func resident(tb testing.TB) int {
	tb.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		tb.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// While KeepFreed is set, reading what was freed ends the process: so a test
// that passes with it has read nothing of the kind.
func TestMemory_KeepFreedFaults(t *testing.T) {
	const name = "WASMCTL_TEST_READ_FREED"
	if os.Getenv(name) != "" {
		KeepFreed.Store(true)
		m := reserveFor(t, page)
		b, err := m.Grow(page)
		if err != nil {
			t.Fatal(err)
		}
		b[5] = 7
		m.Free()
		t.Logf("it reads %d", b[5])
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: memory is on the heap there")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMemory_KeepFreedFaults$")
	cmd.Env = append(os.Environ(), name+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "unexpected fault address") {
		t.Errorf("got %v: %.500s", err, out)
	}
}

// What KeepFreed keeps does not add up to more mappings than a process may have.
func TestMemory_KeepFreedForLong(t *testing.T) {
	KeepFreed.Store(true)
	defer KeepFreed.Store(false)
	for range 100_000 {
		m, err := Reserve(16 * page)
		if err == nil {
			_, err = m.Grow(page)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Free()
	}
}

// Hammer: many goroutines reserve, grow and free at once; nobody meets what
// another has written.
func TestMemory_Hammer(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				m, err := Reserve(256 << 20)
				if err != nil {
					t.Error(err)
					return
				}
				for n := uint64(1); n < 4; n++ {
					b, err := m.Grow(n * page)
					if err != nil || b[n*page-1] != 0 {
						t.Errorf("%v, or what another wrote", err)
						return
					}
					b[n*page-1] = 1
				}
				m.Free()
			}
		})
	}
	wg.Wait()
}

// BenchmarkMemory is what an instance costs that starts with one page and
// touches two of the system's.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		m, err := Reserve(256 << 20)
		if err != nil {
			b.Fatal(err)
		}
		mem, err := m.Grow(page)
		if err != nil {
			b.Fatal(err)
		}
		mem[0], mem[page-1] = 1, 1
		m.Free()
	}
}
