// SPDX-License-Identifier: Apache-2.0

// Package linear holds the linear memory of guests outside of Go's heap: as much
// address space as it may ever need is reserved once, so that growing neither
// copies nor moves it, and freeing it gives it back to the system at once,
// without a garbage collection. Where the system has no mmap it is on the heap.
package linear

import (
	"fmt"
	"math"
	"sync/atomic"
)

// KeepFreed is for tests. While it is set, memory that is freed stays reserved
// and must not be touched: who still reads it ends the process, instead of
// reading what another guest keeps there by then.
var KeepFreed atomic.Bool

// Memory is one linear memory, of one goroutine at a time. The zero value has
// none.
type Memory struct {
	most      int    // that it may become
	space     []byte // that is reserved
	committed int    // how much of it may be touched
}

// Reserve returns a memory that can grow to so many bytes, and has none yet. It
// costs address space only. The error is the system's: there is no address
// space, or the process has too many mappings.
func Reserve(most uint64) (Memory, error) {
	if most > math.MaxInt {
		return Memory{}, fmt.Errorf("memory: %d bytes are more than this system can address", most)
	}
	if most == 0 {
		return Memory{}, nil
	}
	space, err := reserve(int(most))
	if err != nil {
		return Memory{}, fmt.Errorf("memory: %d bytes of address space cannot be reserved (see ulimit -v and vm.max_map_count): %w", most, err)
	}
	return Memory{most: int(most), space: space}, nil
}

// Grow makes the memory so many bytes long and returns it. New memory reads as
// zero; it never shrinks. The error says that there is not so much, and the
// memory is as it was.
func (m *Memory) Grow(size uint64) ([]byte, error) {
	if size > uint64(m.most) { //nolint:gosec // not negative
		return nil, fmt.Errorf("memory: %d bytes are more than the %d that are reserved", size, m.most)
	}
	if n := int(size); n > m.committed { //nolint:gosec // at most what is reserved
		if err := m.commit(n); err != nil {
			return nil, fmt.Errorf("memory: cannot allocate %d bytes: %w", n-m.committed, err)
		}
		m.committed = n
	}
	if size == 0 {
		return []byte{}, nil
	}
	return m.space[:size:size], nil
}

// Free gives everything back. Nothing may touch the memory afterwards, and more
// calls do nothing.
func (m *Memory) Free() {
	if m.space != nil {
		m.free()
	}
	*m = Memory{}
}
