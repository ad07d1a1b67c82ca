// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// fieldTable finds the fields of a struct by name. A linear search would be a
// large part of the cost of decoding: a PodSpec has forty fields.
type fieldTable struct {
	slots []fieldSlot // open addressing by hash; at least one slot is empty
	shift int
}

// fieldSlot is a field, or empty. The length and the first and last eight bytes
// of a name identify it if it has at most 16 bytes. last is 0 if the name has
// at most eight bytes.
type fieldSlot struct {
	first, last uint64
	length      int
	field       *field
}

func newFieldTable(fields []field) *fieldTable {
	size := 4
	for size < 2*len(fields) {
		size *= 2
	}
	t := &fieldTable{make([]fieldSlot, size), 64 - bits.Len(uint(size-1))}
	for i := range fields {
		name := fields[i].name
		slot := fieldSlot{first: loadUpTo8(name), length: len(name), field: &fields[i]}
		if n := len(name); n > 8 {
			slot.last = load8(name[n-8:])
		}
		at := t.hash(slot.first, len(name))
		for t.slots[at].field != nil {
			at = (at + 1) % size
		}
		t.slots[at] = slot
	}
	return t
}

// hash hashes the first bytes and the length of a name.
func (t *fieldTable) hash(first uint64, n int) int {
	return int((first + uint64(n)) * 0x9e3779b97f4a7c15 >> (t.shift & 63))
}

// find returns the field with the name of n bytes at the given address, or nil.
// more reports whether other bytes follow the name, so that eight bytes can be
// read. It works on addresses, because bounds checks would take a third of the
// time.
func (t *fieldTable) find(name unsafe.Pointer, n int, more bool) *field {
	var first, last uint64
	switch {
	case n > 8:
		first, last = loadAt(name), loadAt(unsafe.Add(name, n-8))
	case more: // mask the bytes after the name
		first = loadAt(name) & (^uint64(0) >> ((64 - 8*uint(n)) & 63))
	default:
		first = loadUpTo8(unsafe.String((*byte)(name), n))
	}
	slots, mask := unsafe.Pointer(unsafe.SliceData(t.slots)), len(t.slots)-1
	for at := t.hash(first, n); ; at = (at + 1) & mask {
		s := (*fieldSlot)(unsafe.Add(slots, uintptr(at)*unsafe.Sizeof(fieldSlot{})))
		if s.first == first && s.last == last && s.length == n && s.field != nil &&
			(n <= 16 || equal(s.field.name[8:n-8], unsafe.String((*byte)(unsafe.Add(name, 8)), n-16))) {
			return s.field
		}
		if s.field == nil {
			return nil
		}
	}
}

// loadAt is load8 for an address with at least eight valid bytes.
func loadAt(at unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(at)[:]) }
