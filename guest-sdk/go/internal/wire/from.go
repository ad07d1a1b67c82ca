// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// encodeFunc encodes a variable; see plan.
type encodeFunc = func(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error)

func encodeInterface(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
	v := p.valueAt(at)
	if v.IsNil() {
		return AppendNil(dst), nil
	}
	return appendAny(dst, v.Elem().Interface(), depth+1)
}

func encodeString(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	return AppendText(dst, *(*string)(at))
}

func encodeTime(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	return appendTime(dst, *(*time.Time)(at)), nil
}

func encodePointer(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
	to := *(*unsafe.Pointer)(at)
	if to == nil {
		return AppendNil(dst), nil
	}
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	return p.elem.encode(p.elem, dst, to, depth+1)
}

func encodeSlice(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
	list := *(*[]byte)(at) // the headers of all slice types have the same layout
	switch {
	case list == nil:
		return AppendNil(dst), nil
	case p.elem.kind == reflect.Uint8:
		return AppendString(dst, base64.StdEncoding.EncodeToString(list)), nil
	}
	return encodeElements(p.elem, dst, unsafe.Pointer(unsafe.SliceData(list)), len(list), depth)
}

func encodeArray(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
	return encodeElements(p.elem, dst, at, p.typ.Len(), depth)
}

// encodeElements encodes n variables of a plan, starting at the given address.
func encodeElements(p *plan, dst []byte, at unsafe.Pointer, n, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	dst = AppendArray(dst, n)
	for i := range n {
		var err error
		if dst, err = p.encode(p, dst, unsafe.Add(at, uintptr(i)*p.size), depth+1); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}

func encodeStringMap(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	m := *(*map[string]string)(at)
	if m == nil {
		return AppendNil(dst), nil
	}
	return appendMapString(dst, m)
}

func encodeMap(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
	v := p.valueAt(at)
	switch {
	case p.key == nil:
		return nil, errors.New("Go type " + p.typ.String() + " has keys that are not text")
	case v.IsNil():
		return AppendNil(dst), nil
	case depth > MaxDepth:
		return nil, ErrTooDeep
	}
	m := make(map[string]unsafe.Pointer, v.Len())
	for it := v.MapRange(); it.Next(); {
		name, err := p.key.write(it.Key())
		if err != nil {
			return nil, err
		}
		m[name] = addressed(it.Value()).UnsafePointer()
	}
	dst = AppendMap(dst, len(m))
	for _, e := range sortedEntries(nil, m) {
		var err error
		if dst, err = AppendText(dst, e.key); err == nil {
			dst, err = p.elem.encode(p.elem, dst, e.value, depth+1)
		}
		if err != nil {
			return nil, within(e.key, err)
		}
	}
	return dst, nil
}

func encodeStruct(p *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	b := NewBuilder(dst)
	for i := range p.fields {
		f := &p.fields[i]
		field := unsafe.Add(at, f.offset)
		if !f.indirect && f.empty(field) {
			continue // true for most fields of a PodSpec
		}
		if err := b.field(f, f.at(p, at), depth); err != nil {
			return nil, err
		}
	}
	return b.End(), nil
}

// written returns at, the address of the field, or nil if the field is left
// out.
func (f *field) written(at unsafe.Pointer) unsafe.Pointer {
	if at == nil || f.empty(at) || f.omitZero && f.plan.zero(f.plan, at) {
		return nil
	}
	return at
}

// field appends the field at the given address, unless it is left out or nil.
func (m *Builder) field(f *field, at unsafe.Pointer, depth int) error {
	if f.written(at) == nil {
		return nil
	}
	m.key(f.name)
	b, err := f.plan.encode(f.plan, m.b, at, depth+1)
	if err != nil {
		return within(f.name, err)
	}
	m.b = b
	return nil
}

// encodeNothing refuses a struct that is not empty but would be written as {}.
func encodeNothing(p *plan, _ []byte, _ unsafe.Pointer, _ int) ([]byte, error) {
	return nil, errors.New("Go type " + p.typ.String() + " has no exported field and no MarshalJSON, so it would be written as an empty map")
}

// isEmpty implements omitempty for the types that field.empty cannot check. It
// follows encoding/json, and also treats a zero time.Time as empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return v.Interface().(time.Time).IsZero() //nolint:forcetypeassert // time.Time is the only struct that can be empty
	default:
		return v.IsZero()
	}
}

func isZero(p *plan, at unsafe.Pointer) bool { return p.valueAt(at).IsZero() }

// quoted returns the plan of a field with the option "string", which is JSON in
// a string.
func quoted(p *plan) *plan {
	q := &plan{typ: p.typ, size: p.size, nowhere: p.nowhere, elem: p, nils: p.nils, zero: p.zero, decode: decodeQuoted}
	q.encode = func(q *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
		val, err := q.elem.encode(q.elem, nil, at, depth)
		if err != nil || TypeOf(val) == Nil {
			return append(dst, val...), err
		}
		js, err := AppendAsJSON(nil, val)
		return AppendString(dst, string(js)), err
	}
	return q
}

func decodeQuoted(p *plan, d *decoder, at unsafe.Pointer) error {
	s, ok := d.text()
	if !ok {
		return d.mismatch(p.typ)
	}
	val, err := AppendJSON(nil, s)
	if err != nil {
		return err
	}
	inner := decoder{b: val}
	return inner.into(p.elem, at)
}
