// SPDX-License-Identifier: Apache-2.0

package wire

// Set appends the first value of v to dst, with val, which is one complete
// value, at the path. It creates missing maps on the path. Everything else
// stays unchanged and in its order; a new key comes last. If a step leads into
// something other than a map, the error is ErrType, with the path up to that
// step.
func Set(dst, v []byte, path []string, val []byte) ([]byte, error) {
	if len(path) == 0 {
		return append(dst, val...), nil
	}
	switch t := TypeOf(v); {
	case t == Nil || len(v) == 0:
		dst = AppendString(AppendMap(dst, 1), path[0])
		return Set(dst, nil, path[1:], val)
	case t == Opaque:
		v = Plain(v)
		if TypeOf(v) != Map {
			return nil, within(path[0], ErrType)
		}
	case t != Map:
		return nil, within(path[0], ErrType)
	}
	e, err := find(v, path[0])
	if err != nil {
		return nil, err
	}
	if e.key < 0 {
		dst = append(AppendMap(dst, e.n+1), v[e.first:e.end]...)
		dst, err = Set(AppendString(dst, path[0]), nil, path[1:], val)
	} else {
		dst, err = Set(append(dst, v[:e.value]...), v[e.value:e.next], path[1:], val)
	}
	if err != nil {
		return nil, within(path[0], err)
	}
	return append(dst, v[e.next:e.tail]...), nil
}

// Remove appends the first value of v to dst, without the value at the path. If
// that value does not exist, it appends v unchanged.
func Remove(dst, v []byte, path []string) ([]byte, error) {
	plain := v
	if len(path) > 0 {
		plain = Plain(v)
	}
	if len(path) == 0 || TypeOf(plain) != Map {
		return append(dst, Trim(v)...), nil
	}
	v = plain
	e, err := find(v, path[0])
	switch {
	case err != nil:
		return nil, err
	case e.key < 0:
		return append(dst, v[:e.end]...), nil
	case len(path) == 1:
		dst = append(AppendMap(dst, e.n-1), v[e.first:e.key]...)
		return append(dst, v[e.next:e.end]...), nil
	}
	if dst, err = Remove(append(dst, v[:e.value]...), v[e.value:e.next], path[1:]); err != nil {
		return nil, within(path[0], err)
	}
	return append(dst, v[e.next:e.end]...), nil
}

// place has the positions of an entry of a map: its key, its value, the end of
// the value, the first entry and the end of the map. If the entry does not
// exist, key is -1 and the end of the value is unset.
type place struct {
	n                            int
	first, key, value, next, end int
	tail                         int // end of the map if the entry exists, otherwise 0
}

func find(v []byte, key string) (place, error) {
	p := place{key: -1, end: Skip(v, 0)}
	if p.end < 0 {
		return p, ErrTruncated
	}
	p.n, p.first = Len(v)
	pos := p.first
	for i := 0; i < p.n; i++ {
		k, value := keyAt(v, pos)
		if value < 0 {
			return p, ErrType
		}
		next := Skip(v, value)
		if string(k) == key {
			p.key, p.value, p.next, p.tail = pos, value, next, p.end
			return p, nil
		}
		pos = next
	}
	return p, nil
}
