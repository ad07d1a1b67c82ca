// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"unsafe"
)

// AppendChanged appends the msgpack of two structs, to which was and now point,
// to a and b, without the top-level keys whose values are equal. If was and now
// are not pointers to one struct type, it returns false and appends nothing.
func AppendChanged(a, b []byte, was, now any) (_, _ []byte, ok bool, err error) {
	p, v, w := twoOf(was, now)
	if p == nil {
		return a, b, false, nil
	}
	from, to := NewBuilder(a), NewBuilder(b)
	for i := range p.fields {
		f := &p.fields[i]
		x, y := f.at(p, v), f.at(p, w)
		if x != nil && y != nil && f.plan.same(x, y, 1) {
			continue
		}
		if err := from.field(f, x, 1); err != nil {
			return nil, nil, true, err
		}
		if err := to.field(f, y, 1); err != nil {
			return nil, nil, true, err
		}
	}
	return from.End(), to.End(), true, nil
}

// twoOf returns the plan and the addresses of two structs of one type, to which
// a and b point. It returns a nil plan for other values.
func twoOf(a, b any) (p *plan, x, y unsafe.Pointer) {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	if v.Kind() != reflect.Pointer || w.Kind() != reflect.Pointer || v.Type() != w.Type() || v.IsNil() || w.IsNil() {
		return nil, nil, nil
	}
	if p = planOf(v.Type().Elem()); !p.isPlainStruct() {
		return nil, nil, nil
	}
	return p, v.UnsafePointer(), w.UnsafePointer()
}

// isPlainStruct reports whether the encoding consists of the exported fields
// only.
func (p *plan) isPlainStruct() bool { return p.fields != nil && !p.byMethod }

// at returns the address of the field in the struct at, whose plan is p. It
// returns nil if the field lies behind a nil pointer.
func (f *field) at(p *plan, at unsafe.Pointer) unsafe.Pointer {
	if f.indirect {
		return f.behind(p, at, false)
	}
	return unsafe.Add(at, f.offset)
}

// same reports whether two variables of the plan's type have the same encoding.
// It returns false if a comparison would cost more than encoding both.
func (p *plan) same(a, b unsafe.Pointer, depth int) bool {
	switch {
	case depth > MaxDepth:
		return false
	case p.isPlainStruct():
		for i := range p.fields {
			f := &p.fields[i]
			x, y := f.at(p, a), f.at(p, b)
			if x != y && (x == nil || y == nil || !f.plan.same(x, y, depth+1)) {
				return false
			}
		}
		return true
	case p.kind == reflect.String:
		return equal(*(*string)(a), *(*string)(b))
	case p.kind == reflect.Pointer:
		x, y := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		return x == y || x != nil && y != nil && p.elem.same(x, y, depth+1)
	case p.kind == reflect.Slice:
		return p.sameSlice(*(*[]byte)(a), *(*[]byte)(b), depth)
	case p.typ == stringMap:
		return sameMap(*(*map[string]string)(a), *(*map[string]string)(b))
	}
	return equal(unsafe.String((*byte)(a), p.size), unsafe.String((*byte)(b), p.size))
}

// sameSlice compares slices of the plan's type. It takes them as []byte,
// because the headers of all slice types have the same layout.
func (p *plan) sameSlice(a, b []byte, depth int) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	if p.elem.kind == reflect.Uint8 {
		return equal(unsafeString(a), unsafeString(b))
	}
	x, y := unsafe.Pointer(unsafe.SliceData(a)), unsafe.Pointer(unsafe.SliceData(b))
	for i := range uintptr(len(a)) {
		if !p.elem.same(unsafe.Add(x, i*p.elem.size), unsafe.Add(y, i*p.elem.size), depth+1) {
			return false
		}
	}
	return true
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for key, x := range a {
		if y, ok := b[key]; !ok || !equal(x, y) {
			return false
		}
	}
	return true
}
