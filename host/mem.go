package host

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// linearMemory is the memory of one instance. It keeps the instance within its
// limit and notes a refusal: a guest that runs out of memory traps somewhere
// else, and nothing else tells that trap from a panic.
type linearMemory struct {
	buf   []byte
	limit uint64 // bytes
	// refused is set when growing was refused, and cleared with each call.
	refused bool
}

// Allocate implements experimental.MemoryAllocator.
func (l *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate implements experimental.LinearMemory.
func (l *linearMemory) Reallocate(size uint64) []byte {
	if size > l.limit {
		l.refused = true
		return nil
	}
	if size <= uint64(cap(l.buf)) {
		l.buf = l.buf[:size]
		return l.buf
	}
	// Room for as much again, so that a guest that grows page by page does not
	// copy its memory each time. What it does not touch costs address space
	// only, and fresh memory reads as zero.
	grown := make([]byte, size, min(2*size, l.limit))
	copy(grown, l.buf)
	l.buf = grown
	return l.buf
}

// Free implements experimental.LinearMemory.
func (l *linearMemory) Free() { l.buf = nil }

// inside reports whether a block lies in memory.
func inside(mem api.Memory, ptr, length uint32) bool {
	return uint64(ptr)+uint64(length) <= uint64(mem.Size())
}
