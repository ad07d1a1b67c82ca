// Package mem has the blocks of linear memory that the host reads and writes,
// and the only pointers of this SDK beside those of package imports.
//
// A block is grown and never freed: in the steady state nothing is allocated.
// It is reachable from a package variable or from the caller for as long as the
// host may use it, and Go's collectors do not move what is on the heap, so an
// address that was handed out stays good until the block is grown.
package mem

import "unsafe"

// Block is reusable memory, 8-byte aligned. The zero value is empty.
type Block struct {
	words []uint64 // a []byte could be aligned to less
}

// Grow returns the block's first n bytes, which may hold anything. It
// allocates, with room to spare, only if the block is too small; what Grow
// returned before is then another block's.
func (b *Block) Grow(n int) []byte {
	need := (n + 7) / 8
	if need > len(b.words) {
		b.words = make([]uint64, max(need+need/4, 512))
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.words))), 8*len(b.words))[:n]
}

// Cap is how many bytes the block has.
func (b *Block) Cap() int { return 8 * len(b.words) }

// Address returns where p lies in linear memory, or 0 if it is empty. On a
// machine with 64-bit pointers it means nothing.
func Address(p []byte) uint32 {
	if len(p) == 0 {
		return 0
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
}

// Pack packs the place of p as an entry function returns it: its address in
// the upper half, its length in the lower; 0 if it is empty.
func Pack(p []byte) uint64 {
	if len(p) == 0 {
		return 0
	}
	return uint64(Address(p))<<32 | uint64(uint32(len(p)))
}

// Pointer returns where p starts, for a host function.
func Pointer(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }
