// SPDX-License-Identifier: Apache-2.0

package wire

// Get returns a view of the value under key in the map at the start of v, or
// nil if v is not a map or lacks the key.
func Get(v []byte, key string) []byte {
	if TypeOf(v) != Map {
		if v = Plain(v); TypeOf(v) != Map {
			return nil
		}
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
			return nil // bytes after the last value do not matter
		}
		if pos = Skip(v, next); pos < 0 {
			return nil
		}
	}
	return nil
}

// At follows a path of map keys. It returns nil if a step does not exist.
// Opaque JSON is decoded.
func At(v []byte, path []string) []byte { return Plain(Locate(v, path)) }

// Locate is At, but it does not decode opaque JSON at the end of the path.
func Locate(v []byte, path []string) []byte {
	for _, key := range path {
		if v = Get(v, key); v == nil {
			return nil
		}
	}
	return v
}

// keyAt returns the key at pos as a view, and the position of its value, which
// is -1 if there is no string at pos.
func keyAt(v []byte, pos int) (key []byte, next int) {
	if pos >= len(v) {
		return nil, -1
	}
	// Most keys are short, with a one-byte header.
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

// Iter iterates over the entries of a map or an array:
//
//	for it := wire.Walk(v); it.Next(); {
//		use(it.Key, it.Value)
//	}
type Iter struct {
	// Key is a view of the entry's key; nil for an element of an array.
	Key []byte
	// Value is a view of the entry's value.
	Value []byte
	// Index counts the entries from 0.
	Index int

	v     []byte
	pos   int // position of the current value, or of the first entry
	end   int // end of the current value if known, otherwise 0
	n     int // number of entries
	isMap bool
	bad   bool
}

// Walk returns an iterator over the map or array at the start of v. It has no
// entries if v is neither.
func Walk(v []byte) Iter {
	n, pos := Len(v)
	return Iter{v: v, n: n, pos: pos, Index: -1, isMap: TypeOf(v) == Map}
}

// Next advances to the next entry. It returns false if there is none or the
// bytes end early.
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

// Walked notes that inner has reached the end of the current value, so that
// Next need not scan that value again.
func (it *Iter) Walked(inner *Iter) {
	if inner.bad || inner.Index+1 < inner.n || inner.n <= 0 {
		return
	}
	if n := Skip(inner.v, inner.pos); n > 0 {
		it.end = it.pos + n
	}
}

// Bad reports whether the iteration ended before the last entry.
func (it *Iter) Bad() bool { return it.bad }
