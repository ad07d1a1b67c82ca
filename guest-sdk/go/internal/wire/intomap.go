// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"unsafe"
)

// decodeStringMap decodes a map[string]string.
func decodeStringMap(p *plan, d *decoder, at unsafe.Pointer) error {
	n, err := d.open(Map)
	if err != nil || n < 0 {
		return d.opened(err, p, at)
	}
	m := make(map[string]string, n)
	for ; n > 0; n-- {
		k, ok := d.text()
		if !ok {
			return ErrType
		}
		key, value := d.string(k), ""
		if v, ok := d.text(); ok {
			value = d.string(v)
		} else if TypeOf(d.b[d.pos:]) != Nil {
			return within(key, d.mismatch(p.elem.typ))
		} else {
			d.pos++
		}
		m[key] = value
	}
	*(*map[string]string)(at) = m
	d.depth--
	return nil
}

// decodeQuantities decodes a map with string keys and values of the layout of a
// quantity. All such map types share one runtime representation.
func decodeQuantities(p *plan, d *decoder, at unsafe.Pointer) error {
	n, err := d.open(Map)
	if err != nil || n < 0 {
		return d.opened(err, p, at)
	}
	m := make(map[string]quantity, n)
	for ; n > 0; n-- {
		k, ok := d.text()
		if !ok {
			return ErrType
		}
		key := d.string(k)
		d.amount = quantity{}
		if err := d.into(p.elem, unsafe.Pointer(&d.amount)); err != nil {
			return within(key, err)
		}
		m[key] = d.amount
	}
	*(*map[string]quantity)(at) = m
	d.depth--
	return nil
}

func decodeMap(p *plan, d *decoder, at unsafe.Pointer) error {
	key, elem := p.key, p.elem
	if key == nil {
		return d.mismatch(p.typ)
	}
	n, err := d.open(Map)
	if err != nil || n < 0 {
		return d.opened(err, p, at)
	}
	m := reflect.MakeMapWithSize(p.typ, n)
	k, e, zero := reflect.New(p.typ.Key()).Elem(), reflect.New(elem.typ), reflect.Zero(elem.typ)
	for ; n > 0; n-- {
		s, ok := d.text()
		if !ok {
			return ErrType
		}
		name := d.string(s)
		e.Elem().Set(zero)
		if err := d.into(elem, e.UnsafePointer()); err != nil {
			return within(name, err)
		}
		if err := key.read(name, k); err != nil {
			return within(name, err)
		}
		m.SetMapIndex(k, e.Elem())
	}
	p.valueAt(at).Set(m)
	d.depth--
	return nil
}
