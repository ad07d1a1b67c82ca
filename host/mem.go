package host

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmctl/wasmctl/abi"
)

// linearMemory is the memory of one instance. It keeps the instance within its
// limit, and all instances within the process's budget, and notes a refusal: a
// guest that runs out of memory traps somewhere else, and nothing else tells
// that trap from a panic.
type linearMemory struct {
	buf    []byte
	gen    *generation
	limit  uint64  // bytes
	budget *Budget // nil: not bounded
	// charged is what the budget counts for this memory, in bytes.
	charged int64
	// refused says why growing was refused, and is cleared with each call.
	refused error
}

// reserve charges the budget with the memory that an instance starts with.
// wazero panics where that cannot be had.
func (l *linearMemory) reserve(size int64) error {
	if err := l.budget.take(size); err != nil {
		l.gen.shared.hits.add(abi.LimitMemoryBudget)
		return err
	}
	l.count(size)
	return nil
}

// count notes what the budget counts for this memory now.
func (l *linearMemory) count(charged int64) {
	l.gen.shared.memory.Add(charged - l.charged)
	l.charged = charged
}

// Allocate implements experimental.MemoryAllocator.
func (l *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate implements experimental.LinearMemory.
func (l *linearMemory) Reallocate(size uint64) []byte {
	if size > l.limit {
		if l.refused == nil { // once a call: a guest may go on asking
			l.refused = l.gen.limitError(abi.LimitMemory, "needs more memory than it may have", nil)
		}
		return nil
	}
	if size <= uint64(cap(l.buf)) {
		l.buf = l.buf[:size]
		return l.buf
	}
	room := l.charge(size)
	if room < size {
		return nil
	}
	grown := make([]byte, size, room)
	copy(grown, l.buf)
	l.buf = grown
	return l.buf
}

// charge returns how many bytes may be allocated for a memory of size bytes:
// room for as much again, so that a guest that grows page by page does not copy
// its memory each time, or just size where the budget has no more. What is not
// touched costs address space only, and fresh memory reads as zero.
func (l *linearMemory) charge(size uint64) uint64 {
	wanted := size
	if l.buf != nil {
		wanted = min(2*size, l.limit)
	}
	if l.budget.tryTake(int64(wanted) - l.charged) { //nolint:gosec // at most 4 GiB
		l.count(int64(wanted)) //nolint:gosec // at most 4 GiB
		return wanted
	}
	if l.refused = l.budget.take(int64(size) - l.charged); l.refused != nil { //nolint:gosec // at most 4 GiB
		l.gen.shared.hits.add(abi.LimitMemoryBudget)
		return 0
	}
	l.count(int64(size)) //nolint:gosec // at most 4 GiB
	return size
}

// Free implements experimental.LinearMemory. More calls do nothing.
func (l *linearMemory) Free() {
	l.buf = nil
	l.budget.give(l.charged)
	l.count(0)
}

// inside reports whether a block lies in memory.
func inside(mem api.Memory, ptr, length uint32) bool {
	return uint64(ptr)+uint64(length) <= uint64(mem.Size())
}

// sizeText is a number of bytes as Kubernetes writes quantities, for people:
// "256Ki", "64Mi".
func sizeText(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi"}
	i := 0
	for ; i < len(units)-1 && n != 0 && n%1024 == 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d%s", n, units[i])
}
