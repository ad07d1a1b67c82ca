package wire

// Set appends to dst what v starts with, with val, which is one whole value, at
// the path. Maps that are missing on the way are made; everything else stays as
// it is, in its order, and a new key comes last. A step into something that is
// no map is ErrType, with the path as far as that.
func Set(dst, v []byte, path []string, val []byte) ([]byte, error) {
	if len(path) == 0 {
		return append(dst, val...), nil
	}
	switch t := TypeOf(v); {
	case t == Nil || len(v) == 0:
		dst = AppendString(AppendMap(dst, 1), path[0])
		return Set(dst, nil, path[1:], val)
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

// Remove appends to dst what v starts with, without the value at the path. If
// there is none it appends v as it is.
func Remove(dst, v []byte, path []string) ([]byte, error) {
	if len(path) == 0 || TypeOf(v) != Map {
		return append(dst, Trim(v)...), nil
	}
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

// place is where an entry of a map lies: positions of its key, its value and
// what follows, of the first entry and of the end of the map. Without such an
// entry key is -1 and nothing follows.
type place struct {
	n                            int
	first, key, value, next, end int
	tail                         int // end where there is an entry, else 0
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
