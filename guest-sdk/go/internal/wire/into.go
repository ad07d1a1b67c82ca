// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// DecodeInto decodes the first value of v into the variable that into points
// to. It supports any and the types of Append. nil sets pointers, maps, slices
// and interfaces to nil and does not change other variables. Keys without a
// struct field are ignored. It returns an error for a value of another type or
// out of the range of its variable.
func DecodeInto(v []byte, into any) error { return decodeInto(v, into, false) }

// DecodeKept is DecodeInto for bytes that never change: strings may share their
// memory.
func DecodeKept(v []byte, into any) error { return decodeInto(v, into, true) }

func decodeInto(v []byte, into any, kept bool) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return errors.New("target of a decode is not a pointer")
	}
	end := Skip(v, 0)
	if end < 0 {
		return ErrTruncated
	}
	d := decoder{b: v[:end]}
	if d.own = end <= smallValue; d.own && !kept {
		d.b = bytes.Clone(d.b)
	}
	return d.into(planOf(p.Type().Elem()), p.UnsafePointer())
}

// into decodes the value into the variable at, which has the plan's type.
func (d *decoder) into(p *plan, at unsafe.Pointer) error {
	if d.b[d.pos] != 0xc0 || p.takesNil {
		return p.decode(p, d, at)
	}
	d.null(p, at)
	return nil
}

// null advances past nil and applies it to the variable at.
func (d *decoder) null(p *plan, at unsafe.Pointer) {
	d.pos++
	if p.nils {
		p.valueAt(at).Set(reflect.Zero(p.typ))
	}
}

// mismatch returns the error of a value that does not fit into a variable of
// type t.
func (d *decoder) mismatch(t reflect.Type) error { return mismatch(d.b[d.pos:], t) }

func mismatch(b []byte, t reflect.Type) error {
	return errors.New(TypeOf(b).String() + " does not fit into " + t.String())
}

// unsafeString returns b as a string. The caller must not change b after that.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func decodeInterface(p *plan, d *decoder, at unsafe.Pointer) error {
	v := p.valueAt(at)
	if v.NumMethod() > 0 {
		return errors.New("target is an interface with methods: " + p.typ.String())
	}
	e, err := d.any()
	if err == nil {
		v.Set(reflect.ValueOf(e))
	}
	return err
}

func decodeString(p *plan, d *decoder, at unsafe.Pointer) error {
	s, ok := d.shortText()
	if !ok {
		s, ok = d.text()
	}
	switch {
	case !ok:
		return d.other(p, at)
	case d.own:
		*(*string)(at) = unsafeString(s)
	default:
		*(*string)(at) = d.string(s)
	}
	return nil
}

// time decodes a time for a variable of type t.
func (d *decoder) time(t reflect.Type) (time.Time, error) {
	s, ok := d.text()
	if !ok {
		return time.Time{}, d.mismatch(t)
	}
	return parseTime(s)
}

func decodeTime(p *plan, d *decoder, at unsafe.Pointer) error {
	t, err := d.time(p.typ)
	if err == nil {
		*(*time.Time)(at) = t
	}
	return err
}

// newVariable allocates a variable of the plan's type. For numbers it avoids
// reflect, which takes several times as long.
func (p *plan) newVariable() unsafe.Pointer {
	if p.kind >= reflect.Bool && p.kind <= reflect.Float64 {
		switch p.size {
		case 1:
			return unsafe.Pointer(new(uint8))
		case 4:
			return unsafe.Pointer(new(uint32))
		case 8:
			return unsafe.Pointer(new(uint64))
		}
	}
	return reflect.New(p.typ).UnsafePointer()
}

func decodePointer(p *plan, d *decoder, at unsafe.Pointer) error {
	target := (*unsafe.Pointer)(at)
	if *target == nil {
		*target = p.elem.newVariable()
	}
	return p.elem.decode(p.elem, d, *target)
}

func decodeStruct(p *plan, d *decoder, at unsafe.Pointer) error {
	n, err := d.open(Map)
	if err != nil || n < 0 {
		return d.opened(err, p, at)
	}
	b, own := unsafe.Pointer(unsafe.SliceData(d.b)), d.own
	for ; n > 0; n-- {
		start := d.pos + 1
		c := *(*byte)(unsafe.Add(b, d.pos))
		length := int(c & 0x1f)
		if c&0xe0 != 0xa0 { // rare: a long key
			key, ok := d.text()
			if !ok {
				return ErrType
			}
			length = len(key)
			start = d.pos - length
		}
		end := start + length
		d.pos = end
		f := p.byKey.find(unsafe.Add(b, start), length, start+8 <= len(d.b))
		if f == nil {
			d.skip()
			continue
		}
		field := unsafe.Add(at, f.offset)
		if f.indirect {
			if field = f.behind(p, at, true); field == nil {
				d.skip()
				continue
			}
		}
		c = *(*byte)(unsafe.Add(b, end))
		switch {
		case own && f.isText && c&0xe0 == 0xa0: // the most frequent case
			d.pos = end + 1 + int(c&0x1f)
			*(*string)(field) = unsafe.String((*byte)(unsafe.Add(b, end+1)), int(c&0x1f))
		case c == 0xc0 && !f.plan.takesNil:
			d.null(f.plan, field)
		default: // inlines into, to save a call
			if err := f.plan.decode(f.plan, d, field); err != nil {
				return within(f.name, err)
			}
		}
	}
	d.depth--
	return nil
}

func decodeBytes(d *decoder, at unsafe.Pointer) error {
	s, _ := d.text()
	b := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Decode(b, s)
	if err == nil {
		*(*[]byte)(at) = b[:n]
	}
	return err
}

func decodeSlice(p *plan, d *decoder, at unsafe.Pointer) error {
	elem := p.elem
	if elem.kind == reflect.Uint8 && TypeOf(d.b[d.pos:]) == String {
		return decodeBytes(d, at)
	}
	n, err := d.open(Array)
	if err != nil || n < 0 {
		return d.opened(err, p, at)
	}
	list := reflect.MakeSlice(p.typ, n, n) // n is safe: Skip has seen a byte for each element
	first, size := list.UnsafePointer(), elem.size
	for i := range n {
		if err := d.into(elem, unsafe.Add(first, uintptr(i)*size)); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	// The headers of all slice types have the same layout: an address and two
	// lengths.
	*(*[]byte)(at) = unsafe.Slice((*byte)(first), n)
	d.depth--
	return nil
}

// decodeArray ignores surplus elements and sets missing elements to zero.
func decodeArray(p *plan, d *decoder, at unsafe.Pointer) error {
	elem := p.elem
	n, err := d.open(Array)
	if err != nil || n < 0 {
		return d.opened(err, p, at)
	}
	p.valueAt(at).Set(reflect.Zero(p.typ))
	for i := range n {
		if i >= p.typ.Len() {
			d.skip()
		} else if err := d.into(elem, unsafe.Add(at, uintptr(i)*elem.size)); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	d.depth--
	return nil
}
