package host

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// linearMemory is the memory of one instance. It keeps the instance within its
// limit, and all instances within the process's budget, and notes a refusal: a
// guest that runs out of memory traps somewhere else, and nothing else tells
// that trap from a panic. It is outside of Go's heap. Views of it must not
// outlive the instance: release returns it to the system.
type linearMemory struct {
	mem linear.Memory
	// start is what it starts with; nil where the engine sets that up.
	start  *linear.Image
	gen    *revision
	budget *Budget // nil: not bounded
	// charged is what the budget counts for this memory, in bytes.
	charged int64
	// refused says why growing was refused, and is cleared with each call.
	refused error
	// upstream is, in a guest process, the host, which counts.
	upstream *upstream
}

// reserve takes what an instance starts with, and the addresses of what it may
// have at most: wazero panics where the first cannot be had.
func (l *linearMemory) reserve(in *instance) (err error) {
	g := in.gen
	l.gen, l.budget, l.upstream = g, g.cfg.Budget, in.upstream
	size := g.code.startSize
	if l.start != nil {
		size = int64(l.start.Size())
	}
	if err := l.charge(size); err != nil {
		return err
	}
	if l.mem, err = linear.Reserve(uint64(max(g.limits.Memory, size))); err != nil { //nolint:gosec // not negative
		return err
	}
	if l.start != nil {
		return l.mem.Load(l.start)
	}
	_, err = l.mem.Grow(uint64(size)) //nolint:gosec // not negative
	return err
}

// charge has the budget count so many bytes for this memory.
func (l *linearMemory) charge(size int64) error {
	if l.upstream != nil && size > l.gen.code.startSize { // what it starts with is counted
		if err := l.upstream.grow(size); err != nil {
			return err
		}
	}
	if err := l.budget.take(size - l.charged); err != nil {
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

// Allocate implements vm.Allocator.
func (l *linearMemory) Allocate(_, _ uint64) vm.LinearMemory { return l }

// Reallocate implements vm.LinearMemory.
func (l *linearMemory) Reallocate(size uint64) []byte {
	if limit := uint64(l.gen.limits.Memory); size > limit { //nolint:gosec // not negative
		if l.refused == nil { // once a call: a guest may go on asking
			l.refused = l.gen.limitError(abi.LimitMemory, "exceeded its memory limit", nil)
		}
		return nil
	}
	b, err := l.grow(size)
	if err != nil {
		l.refused = err
	}
	return b
}

// grow charges the budget before the system is asked: what may be touched is
// counted, what is reserved is not.
func (l *linearMemory) grow(size uint64) ([]byte, error) {
	had := l.charged
	if err := l.charge(max(int64(size), had)); err != nil { //nolint:gosec // at most the limit
		return nil, err
	}
	b, err := l.mem.Grow(size)
	if err != nil {
		l.budget.give(l.charged - had)
		l.count(had)
	}
	return b, err
}

// Free implements vm.LinearMemory. wazero calls it where a guest
// exits, in the middle of a call: the memory is kept until release.
func (l *linearMemory) Free() {}

// release gives everything back. More calls do nothing.
func (l *linearMemory) release() {
	l.mem.Free()
	l.budget.give(l.charged)
	l.count(0)
}

// inside reports whether a block lies in memory.
func inside(mem vm.Memory, ptr, length uint32) bool {
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
