// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// linearMemory is the memory of one instance. It keeps the instance within its limit, and
// has the host charge the budget of the process. It records a refusal, because a guest that
// runs out of memory traps later, and nothing else distinguishes that trap from a panic. It
// lies outside of Go's heap. Slices of it must not outlive the instance, because free
// returns it to the system.
type linearMemory struct {
	local *Local
	mem   linear.Memory
	// start is the content with which it starts; nil if wazero sets that up.
	start *linear.Image
	// charged is the size that the host has charged for this memory, in bytes. The host
	// charges Code.Outside with it.
	charged int64
	// refused is the reason why growing was refused in this call.
	refused error
}

// reserve takes the memory with which an instance starts, and the addresses of the memory
// that it may have at most: wazero panics if it cannot have the first.
func (l *linearMemory) reserve() (err error) {
	size := l.local.code.StartSize
	if l.start != nil {
		size = int64(l.start.Size())
	}
	if err := l.charge(size); err != nil {
		return err
	}
	if l.mem, err = linear.Reserve(uint64(max(l.local.core.Spec.Limits.Memory, size))); err != nil { //nolint:gosec // not negative
		return err
	}
	if l.start != nil {
		return l.mem.Load(l.start)
	}
	_, err = l.mem.Grow(uint64(size)) //nolint:gosec // not negative
	return err
}

func (l *linearMemory) charge(size int64) error {
	if err := l.local.host.Resize(size + l.local.code.Outside); err != nil {
		return err
	}
	l.charged = size
	return nil
}

// Allocate implements vm.Allocator.
func (l *linearMemory) Allocate(_, _ uint64) vm.LinearMemory { return l }

// Reallocate implements vm.LinearMemory.
func (l *linearMemory) Reallocate(size uint64) []byte {
	spec := l.local.core.Spec
	if limit := uint64(spec.Limits.Memory); size > limit { //nolint:gosec // not negative
		if l.refused == nil { // once in a call: a guest may go on asking
			l.refused = spec.LimitError(abi.LimitMemory, "exceeded its memory limit", nil)
		}
		return nil
	}
	b, err := l.grow(size)
	if err != nil {
		l.refused = err
	}
	return b
}

// grow has the budget charged before it asks the system: memory that may be touched counts,
// reserved addresses do not.
func (l *linearMemory) grow(size uint64) ([]byte, error) {
	if c := l.local.core; !c.Run.StartedAt.IsZero() { // it may wait, which is no work of the guest
		c.resume()
		c.time.pause(c.work.since)
		defer func() {
			c.lap()
			c.time.since = c.work.since
		}()
	}
	had := l.charged
	if err := l.charge(max(int64(size), had)); err != nil { //nolint:gosec // at most the limit
		return nil, err
	}
	b, err := l.mem.Grow(size)
	if err != nil {
		_ = l.charge(had) // gives memory back, which cannot fail
	}
	return b, err
}

// Free implements vm.LinearMemory. Wazero calls it when a guest exits, in the middle of a
// call: the memory stays until free.
func (l *linearMemory) Free() {}

// free returns everything to the system. More calls do nothing.
func (l *linearMemory) free() { l.mem.Free() }

// inside reports whether a block lies in memory.
func inside(mem vm.Memory, ptr, length uint32) bool {
	return uint64(ptr)+uint64(length) <= uint64(mem.Size())
}
