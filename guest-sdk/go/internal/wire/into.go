package wire

import (
	"encoding/base64"
	"errors"
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// DecodeInto decodes the value that v starts with into what the pointer into
// points to: see Append for the types, and any. nil makes pointers, maps, slices
// and interfaces nil and leaves other variables as they are; keys that a struct
// does not have are ignored. A value of another type or out of the range of its
// target is an error.
func DecodeInto(v []byte, into any) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return errors.New("target of a decode is not a pointer")
	}
	end := Skip(v, 0)
	if end < 0 {
		return ErrTruncated
	}
	d := decoder{b: v[:end]}
	return d.into(planOf(p.Type().Elem()), p.Elem())
}

// into decodes the value into v.
func (d *decoder) into(p *plan, v reflect.Value) error {
	if d.b[d.pos] != 0xc0 || p.takesNil {
		return p.decode(d, v)
	}
	d.pos++
	if p.nils {
		v.Set(reflect.Zero(v.Type()))
	}
	return nil
}

// mismatch is the error of a value that v cannot hold.
func (d *decoder) mismatch(v reflect.Value) error { return mismatch(d.b[d.pos:], v) }

func mismatch(b []byte, v reflect.Value) error {
	return errors.New(TypeOf(b).String() + " does not fit into " + v.Type().String())
}

// unsafeString is b as a string; nothing changes b after that.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func decodeInterface(d *decoder, v reflect.Value) error {
	if v.NumMethod() > 0 {
		return errors.New("target is an interface with methods: " + v.Type().String())
	}
	e, err := d.any()
	if err == nil {
		v.Set(reflect.ValueOf(e))
	}
	return err
}

func decodeString(d *decoder, v reflect.Value) error {
	s, ok := d.text()
	if !ok {
		return d.mismatch(v)
	}
	v.SetString(d.string(s))
	return nil
}

func decodeScalar(d *decoder, into reflect.Value) error {
	v, ok := d.b[d.pos:], false
	d.skip()
	switch into.Kind() {
	case reflect.Bool:
		var b bool
		if b, ok = ReadBool(v); ok {
			into.SetBool(b)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		if i, ok = ReadInt(v); ok {
			into.SetInt(i)
			ok = into.Int() == i
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var i int64
		if i, ok = ReadInt(v); ok {
			into.SetUint(uint64(i))
			ok = i >= 0 && into.Uint() == uint64(i)
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		if f, ok = ReadFloat(v); ok {
			into.SetFloat(f)
			ok = !math.IsInf(into.Float(), 0)
		}
	default: // fits nowhere
	}
	if !ok {
		return mismatch(v, into)
	}
	return nil
}

// time reads a time that is to be in v.
func (d *decoder) time(v reflect.Value) (time.Time, error) {
	s, ok := d.text()
	if !ok {
		return time.Time{}, d.mismatch(v)
	}
	return time.Parse(time.RFC3339, string(s))
}

func decodeTime(d *decoder, v reflect.Value) error {
	t, err := d.time(v)
	if err == nil {
		v.Set(reflect.ValueOf(t))
	}
	return err
}

func decodeStruct(d *decoder, v reflect.Value, fields *fieldTable) error {
	if TypeOf(d.b[d.pos:]) != Map {
		return d.mismatch(v)
	}
	n, err := d.open()
	if err != nil {
		return err
	}
	for ; n > 0; n-- {
		key, ok := d.text()
		if !ok {
			return ErrType
		}
		f := fields.find(key)
		if f == nil {
			d.skip()
			continue
		}
		fv, ok := f.in(v, true)
		if !ok {
			d.skip()
			continue
		}
		if err := d.into(f.plan, fv); err != nil {
			return within(f.name, err)
		}
	}
	d.depth--
	return nil
}

func decodeBytes(d *decoder, v reflect.Value) error {
	s, _ := d.text()
	b := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Decode(b, s)
	if err == nil {
		v.SetBytes(b[:n])
	}
	return err
}

func decodeSlice(d *decoder, v reflect.Value, elem *plan) error {
	if TypeOf(d.b[d.pos:]) != Array {
		return d.mismatch(v)
	}
	n, err := d.open()
	if err != nil {
		return err
	}
	list := reflect.MakeSlice(v.Type(), n, n) // each element has a byte: Skip has seen them all
	for i := range n {
		if err := d.into(elem, list.Index(i)); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	v.Set(list)
	d.depth--
	return nil
}

// decodeArrayInto leaves out what is too much, and makes zero what is missing.
func decodeArrayInto(d *decoder, v reflect.Value, elem *plan) error {
	if TypeOf(d.b[d.pos:]) != Array {
		return d.mismatch(v)
	}
	n, err := d.open()
	if err != nil {
		return err
	}
	v.Set(reflect.Zero(v.Type()))
	for i := range n {
		if i >= v.Len() {
			d.skip()
		} else if err := d.into(elem, v.Index(i)); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	d.depth--
	return nil
}

func decodeStringMap(d *decoder, v reflect.Value) error {
	if TypeOf(d.b[d.pos:]) != Map {
		return d.mismatch(v)
	}
	n, err := d.open()
	if err != nil {
		return err
	}
	m := make(map[string]string, n)
	for ; n > 0; n-- {
		k, ok := d.text()
		if !ok {
			return ErrType
		}
		key := d.string(k)
		switch s, ok := d.text(); {
		case ok:
			m[key] = d.string(s)
		case d.b[d.pos] == 0xc0:
			d.pos++
			m[key] = ""
		default:
			return within(key, errors.New(TypeOf(d.b[d.pos:]).String()+" does not fit into string"))
		}
	}
	v.Set(reflect.ValueOf(m))
	d.depth--
	return nil
}

func decodeMapInto(d *decoder, v reflect.Value, key *keys, elem *plan) error {
	t := v.Type()
	if TypeOf(d.b[d.pos:]) != Map || key == nil {
		return d.mismatch(v)
	}
	n, err := d.open()
	if err != nil {
		return err
	}
	m := reflect.MakeMapWithSize(t, n)
	k, e, zero := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem(), reflect.Zero(t.Elem())
	for ; n > 0; n-- {
		s, ok := d.text()
		if !ok {
			return ErrType
		}
		name := d.string(s)
		e.Set(zero)
		if err := d.into(elem, e); err != nil {
			return within(name, err)
		}
		if err := key.read(name, k); err != nil {
			return within(name, err)
		}
		m.SetMapIndex(k, e)
	}
	v.Set(m)
	d.depth--
	return nil
}
