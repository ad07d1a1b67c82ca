package wire

import (
	"reflect"
	"sync"
)

// plan says how a Go type is read and written. Finding that out takes longer
// than doing it, so it is done once for a type.
type plan struct {
	// decode reads the value that d is at into v, which can be set, and leaves d
	// behind the value. It is not called for nil, unless takesNil.
	decode   func(d *decoder, v reflect.Value) error
	takesNil bool
	// nils says that nil makes v its zero value; else nil leaves it as it is.
	nils bool
	// encode appends v. It may take an address only if v.CanAddr.
	encode func(dst []byte, v reflect.Value, depth int) ([]byte, error)
	// zero says what omitzero leaves out.
	zero func(v reflect.Value) bool
}

// plans has a plan for each type that was met.
var plans = struct {
	sync.Mutex
	of map[reflect.Type]*plan // guarded by Mutex; a plan does not change once the lock is free
}{of: map[reflect.Type]*plan{}}

// planOf returns the plan of a type.
func planOf(t reflect.Type) *plan {
	plans.Lock()
	defer plans.Unlock()
	return makePlan(t)
}

// makePlan is planOf under the lock. A type may contain itself: it then finds the
// plan that is being made.
func makePlan(t reflect.Type) *plan {
	if p := plans.of[t]; p != nil {
		return p
	}
	p := &plan{}
	plans.of[t] = p
	if !p.byName(t) {
		p.byKind(t)
		p.byMethods(t)
	}
	if p.zero == nil {
		p.zero = reflect.Value.IsZero
	}
	return p
}

// byKind plans for a type without methods.
func (p *plan) byKind(t reflect.Type) {
	p.decode, p.encode = decodeScalar, encodeScalar
	switch t.Kind() {
	case reflect.String:
		p.decode, p.encode = decodeString, encodeString
	case reflect.Pointer:
		p.pointer(makePlan(t.Elem()))
	case reflect.Interface:
		p.decode, p.encode, p.nils = decodeInterface, encodeInterface, true
	case reflect.Slice, reflect.Array:
		p.list(t)
	case reflect.Map:
		p.mapping(t)
	case reflect.Struct:
		if t == timeType {
			p.decode, p.encode = decodeTime, encodeTime
			return
		}
		p.structure(t)
	default: // scalars, and what has no form
	}
}

func (p *plan) pointer(elem *plan) {
	p.nils = true
	p.decode = func(d *decoder, v reflect.Value) error {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return elem.decode(d, v.Elem())
	}
	p.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.IsNil() {
			return AppendNil(dst), nil
		}
		if depth > MaxDepth {
			return nil, ErrTooDeep
		}
		return elem.encode(dst, v.Elem(), depth+1)
	}
}

func (p *plan) list(t reflect.Type) {
	elem := makePlan(t.Elem())
	encode := func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		return encodeList(dst, v, depth, elem)
	}
	p.encode = encode
	if t.Kind() == reflect.Array {
		p.decode = func(d *decoder, v reflect.Value) error { return decodeArrayInto(d, v, elem) }
		return
	}
	p.nils = true
	bytes := t.Elem().Kind() == reflect.Uint8
	p.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		switch {
		case v.IsNil():
			return AppendNil(dst), nil
		case bytes:
			return encodeBytes(dst, v), nil
		}
		return encode(dst, v, depth)
	}
	p.decode = func(d *decoder, v reflect.Value) error {
		if bytes && TypeOf(d.b[d.pos:]) == String {
			return decodeBytes(d, v)
		}
		return decodeSlice(d, v, elem)
	}
}

func (p *plan) mapping(t reflect.Type) {
	p.nils = true
	if t == reflect.TypeOf(map[string]string(nil)) { //nolint:modernize // not every TinyGo has reflect.TypeFor
		p.decode, p.encode = decodeStringMap, encodeStringMap
		return
	}
	key, elem := keysOf(t.Key()), makePlan(t.Elem())
	p.decode = func(d *decoder, v reflect.Value) error { return decodeMapInto(d, v, key, elem) }
	p.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		return encodeMap(dst, v, depth, key, elem)
	}
}

func (p *plan) structure(t reflect.Type) {
	fields := fieldsOf(t)
	for i := range fields {
		if fields[i].plan = makePlan(fields[i].typ); fields[i].quoted {
			fields[i].plan = quoted(fields[i].plan)
		}
	}
	byName := newFieldTable(fields)
	p.decode = func(d *decoder, v reflect.Value) error { return decodeStruct(d, v, byName) }
	if len(fields) == 0 && hidesAll(t) {
		p.encode = encodeNothing
		return
	}
	p.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		return encodeStruct(dst, v, depth, fields)
	}
}

// hidesAll reports whether a struct has fields and none of them is exported: it
// holds something that would get lost.
func hidesAll(t reflect.Type) bool {
	for i := 0; i < t.NumField(); i++ {
		if sf := t.Field(i); sf.IsExported() || sf.Anonymous {
			return false
		}
	}
	return t.NumField() > 0
}
