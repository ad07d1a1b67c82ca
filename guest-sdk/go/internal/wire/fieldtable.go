package wire

import (
	"encoding/binary"
	"math/bits"
)

// fieldTable finds the fields of a struct by name. To look at one name after the
// other would be a large part of what decoding costs: a PodSpec has forty.
type fieldTable struct {
	slots []fieldSlot // by hash; those of equal hash follow each other, then one is empty
	shift int
}

// fieldSlot is a field, or empty. The first eight bytes of its name and the last ones, 0 if
// it has no more than eight, tell it from all others of its length up to sixteen.
type fieldSlot struct {
	first, last uint64
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
		slot := fieldSlot{first: loadUpTo8(name), field: &fields[i]}
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

// hash is by the first bytes and the length.
func (t *fieldTable) hash(first uint64, n int) int {
	return int((first + uint64(n)) * 0x9e3779b97f4a7c15 >> (t.shift & 63))
}

// find returns the field whose name is in b from start to end, or nil.
func (t *fieldTable) find(b []byte, start, end int) *field {
	var first, last uint64
	n := end - start
	switch {
	case n > 8:
		first, last = binary.LittleEndian.Uint64(b[start:]), binary.LittleEndian.Uint64(b[end-8:])
	case start+8 <= len(b): // what follows the name is no part of it
		first = binary.LittleEndian.Uint64(b[start:]) & (^uint64(0) >> ((64 - 8*uint(n)) & 63))
	default:
		first = loadUpTo8(unsafeString(b[start:end]))
	}
	for at := t.hash(first, n); ; at = (at + 1) & (len(t.slots) - 1) {
		s := &t.slots[at]
		if s.field == nil {
			return nil
		}
		if s.first == first && s.last == last && len(s.field.name) == n &&
			(n <= 16 || equal(s.field.name[8:n-8], unsafeString(b[start+8:end-8]))) {
			return s.field
		}
	}
}
