// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"reflect"
	"unsafe"
)

// AppendMerge appends the merge patch (RFC 7386) that turns the struct was into
// the struct now, both given as pointers to one type. It returns false for
// other types, and if maps other than structs differ: for these, the encodings
// must be compared.
func AppendMerge(dst []byte, was, now any) (_ []byte, ok bool, err error) {
	p, x, y := twoOf(was, now)
	if p == nil {
		return dst, false, nil
	}
	m := NewBuilder(dst)
	if ok, err = m.changes(p, x, y, 1); !ok || err != nil {
		return dst, false, err
	}
	return m.End(), true, nil
}

// changes appends the fields that differ between two structs of a plan.
func (m *Builder) changes(p *plan, x, y unsafe.Pointer, depth int) (ok bool, err error) {
	if depth > MaxDepth {
		return false, ErrTooDeep
	}
	ok = true
	for i := 0; i < len(p.fields) && ok && err == nil; i++ {
		f := &p.fields[i]
		a, b := f.written(f.at(p, x)), f.written(f.at(p, y))
		switch {
		case a != nil && b != nil:
			if !f.plan.same(a, b, depth) {
				ok, err = m.change(f, a, b, depth)
			}
		case a != nil:
			m.key(f.name)
			m.b = AppendNil(m.b)
		case b != nil:
			err = m.field(f, b, depth)
		}
	}
	return ok, err
}

// change appends the difference of a field that both structs have.
func (m *Builder) change(f *field, a, b unsafe.Pointer, depth int) (ok bool, err error) {
	p, x, y := f.plan, a, b
	for p.kind == reflect.Pointer && x != nil && y != nil {
		p, x, y = p.elem, *(*unsafe.Pointer)(x), *(*unsafe.Pointer)(y)
	}
	before := *m
	if p.isPlainStruct() && x != nil && y != nil {
		m.key(f.name)
		inner := NewBuilder(m.b)
		if ok, err = inner.changes(p, x, y, depth+1); err != nil {
			return false, within(f.name, err)
		}
		if m.b = inner.End(); inner.n == 0 {
			*m = before
		}
		return ok, nil
	}
	was, err := f.plan.encode(f.plan, nil, a, depth+1)
	if err != nil {
		return false, within(f.name, err)
	}
	if err = m.field(f, b, depth); err != nil {
		return false, err
	}
	now := m.b[len(AppendString(before.b, f.name)):]
	if bytes.Equal(was, now) {
		*m = before
	}
	return !nests(was) || !nests(now) || m.n == before.n, nil
}

// nests reports whether a value is a map, or may contain one as opaque JSON.
func nests(v []byte) bool { return TypeOf(v) == Map || TypeOf(v) == Opaque }
