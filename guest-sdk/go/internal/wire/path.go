package wire

// Get returns the view of the value under key of the map that v starts with;
// nil if v is no map or has no such key.
func Get(v []byte, key string) []byte {
	if TypeOf(v) != Map {
		return nil
	}
	n, pos := Len(v)
	for ; n > 0; n-- {
		k, next := keyAt(v, pos)
		if next < 0 {
			return nil
		}
		if equal(unsafeString(k), key) {
			return v[next:]
		}
		if n == 1 {
			return nil // what follows the last value does not matter
		}
		if pos = Skip(v, next); pos < 0 {
			return nil
		}
	}
	return nil
}

// At walks maps by key; nil if a step of the path is not there.
func At(v []byte, path []string) []byte {
	for _, key := range path {
		if v = Get(v, key); v == nil {
			return nil
		}
	}
	return v
}

// keyAt returns the key at pos as a view and the position of its value; -1 if
// there is no string.
func keyAt(v []byte, pos int) (key []byte, next int) {
	if pos >= len(v) {
		return nil, -1
	}
	// Most keys are short: their head is one byte.
	if c := v[pos]; c&0xe0 == 0xa0 {
		end := pos + 1 + int(c&0x1f)
		if end > len(v) {
			return nil, -1
		}
		return v[pos+1 : end], end
	}
	key, ok := StringBytes(v[pos:])
	if !ok {
		return nil, -1
	}
	return key, Skip(v, pos)
}

// Iter walks the entries of a map or an array:
//
//	for it := wire.Walk(v); it.Next(); {
//		use(it.Key, it.Value)
//	}
type Iter struct {
	// Key is the entry's key as a view; nil for an element of an array.
	Key []byte
	// Value is the view of the entry's value.
	Value []byte
	// Index counts the entries from 0.
	Index int

	v     []byte
	pos   int // of the current value, or of the first entry
	end   int // of the current value, where it is known; else 0
	n     int // entries
	isMap bool
	bad   bool
}

// Walk starts before the first entry of the map or array that v starts with;
// there are none if v is neither.
func Walk(v []byte) Iter {
	n, pos := Len(v)
	return Iter{v: v, n: n, pos: pos, Index: -1, isMap: TypeOf(v) == Map}
}

// Next goes to the next entry; false if there is none or the bytes end early.
func (it *Iter) Next() bool {
	if it.Index+1 >= it.n || it.bad {
		return false
	}
	next := it.pos
	if it.end > 0 {
		next, it.end = it.end, 0
	} else if it.Index >= 0 {
		next = Skip(it.v, it.pos)
	}
	if next >= 0 && it.isMap {
		it.Key, next = keyAt(it.v, next)
	}
	if next < 0 || next >= len(it.v) {
		it.bad = true
		return false
	}
	it.pos, it.Value = next, it.v[next:]
	it.Index++
	return true
}

// Walked tells that inner has walked the current value to its end, which is skipped
// without another look then.
func (it *Iter) Walked(inner *Iter) {
	if inner.bad || inner.Index+1 < inner.n || inner.n <= 0 {
		return
	}
	if n := Skip(inner.v, inner.pos); n > 0 {
		it.end = it.pos + n
	}
}

// Bad reports whether the walk ended before the last entry.
func (it *Iter) Bad() bool { return it.bad }
