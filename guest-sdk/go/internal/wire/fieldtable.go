package wire

// fieldTable finds the fields of a struct by name. To look at one name after the
// other would be a large part of what decoding costs: a PodSpec has forty.
type fieldTable struct {
	slots []*field // by hash; those of equal hash follow each other, then one is nil
}

func newFieldTable(fields []field) *fieldTable {
	size := 4
	for size < 2*len(fields) {
		size *= 2
	}
	t := &fieldTable{make([]*field, size)}
	for i := range fields {
		at := t.hash([]byte(fields[i].name))
		for t.slots[at] != nil {
			at = (at + 1) % size
		}
		t.slots[at] = &fields[i]
	}
	return t
}

// hash is by the length and three characters, which tell most names apart.
func (t *fieldTable) hash(name []byte) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	return (n*7 + int(name[0])*31 + int(name[n/2])*11 + int(name[n-1])*5) & (len(t.slots) - 1)
}

// find returns the field of that name, or nil.
func (t *fieldTable) find(name []byte) *field {
	for at := t.hash(name); ; at = (at + 1) & (len(t.slots) - 1) {
		f := t.slots[at]
		if f == nil || f.name == string(name) { // does not allocate
			return f
		}
	}
}
