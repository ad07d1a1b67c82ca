// SPDX-License-Identifier: Apache-2.0

// Package mem manages the blocks of linear memory that the host reads and
// writes. Apart from package imports, only this package of the SDK handles
// pointers for the host.
//
// Blocks grow and are never freed, so in the steady state nothing is allocated.
// A package variable or the caller references a block for as long as the host
// may use it, and Go's collectors do not move heap memory. So an address stays
// valid until its block grows.
package mem

import "unsafe"

// Block is reusable memory, 8-byte aligned. The zero value is empty.
type Block struct {
	words []uint64 // uint64 guarantees the alignment, []byte would not
}

// Grow returns the first n bytes of the block, with undefined content. If the
// block is too small, Grow allocates a larger one with some spare room; slices
// that Grow returned earlier then no longer belong to the block.
func (b *Block) Grow(n int) []byte {
	need := (n + 7) / 8
	if need > len(b.words) {
		b.words = make([]uint64, max(need+need/4, 512))
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.words))), 8*len(b.words))[:n]
}

// Cap returns the size of the block in bytes.
func (b *Block) Cap() int { return 8 * len(b.words) }

// Address returns the address of p in linear memory, or 0 if p is empty. The
// result has no meaning on a machine with 64-bit pointers.
func Address(p []byte) uint32 {
	if len(p) == 0 {
		return 0
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
}

// Pack encodes p as the result of an entry function: its address in the upper
// half, its length in the lower half, or 0 if p is empty.
func Pack(p []byte) uint64 {
	if len(p) == 0 {
		return 0
	}
	return uint64(Address(p))<<32 | uint64(uint32(len(p)))
}

// Pointer returns a pointer to the start of p, for a host function.
func Pointer(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }
