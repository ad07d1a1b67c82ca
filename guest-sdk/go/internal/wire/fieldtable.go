package wire

import "math/bits"

// fieldTable finds the fields of a struct by name. To look at one name after the
// other would be a large part of what decoding costs: a PodSpec has forty.
type fieldTable struct {
	slots []fieldSlot // by hash; those of equal hash follow each other, then one is empty
	shift int
}

// fieldSlot is a field, or empty. Its first eight bytes tell a name from most others.
type fieldSlot struct {
	first uint64
	field *field
}

func newFieldTable(fields []field) *fieldTable {
	size := 4
	for size < 2*len(fields) {
		size *= 2
	}
	t := &fieldTable{make([]fieldSlot, size), 64 - bits.Len(uint(size-1))}
	for i := range fields {
		first := loadUpTo8(fields[i].name)
		at := t.hash(first, len(fields[i].name))
		for t.slots[at].field != nil {
			at = (at + 1) % size
		}
		t.slots[at] = fieldSlot{first, &fields[i]}
	}
	return t
}

// hash is by the first bytes and the length.
func (t *fieldTable) hash(first uint64, n int) int {
	return int((first + uint64(n)) * 0x9e3779b97f4a7c15 >> (t.shift & 63))
}

// find returns the field of that name, or nil.
func (t *fieldTable) find(name string) *field {
	first := loadUpTo8(name)
	for at := t.hash(first, len(name)); ; at = (at + 1) & (len(t.slots) - 1) {
		s := &t.slots[at]
		if s.field == nil || s.first == first && len(s.field.name) == len(name) && (len(name) <= 8 || equal(s.field.name[8:], name[8:])) {
			return s.field
		}
	}
}
