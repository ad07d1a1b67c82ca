// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"sync"
	"unsafe"
)

// plan has the functions that decode and encode a Go type. It is made once for
// each type, because making it takes longer than using it.
type plan struct {
	typ  reflect.Type
	kind reflect.Kind // kind of typ
	size uintptr
	// nowhere is a nil pointer of type *typ.
	nowhere any
	// decode decodes the next value of d into the variable at, which has type
	// typ, and advances d past the value. It is called for nil only if takesNil
	// is set.
	decode   func(p *plan, d *decoder, at unsafe.Pointer) error
	takesNil bool
	isText   bool        // decode is decodeString
	elem     *plan       // plan of the element of a pointer, list or map, or of a quoted field
	key      *keys       // keys of a map; nil if they cannot be written as text
	fields   []field     // fields of a struct; nil if it has fields but none is exported
	byKey    *fieldTable // the same fields by name
	byMethod bool        // methods of the type encode it
	// nils means that nil sets the variable to its zero value; otherwise nil
	// does not change it.
	nils bool
	// encode appends the encoding of the variable at, which has type typ. It
	// does not change the variable.
	encode encodeFunc
	// zero reports whether omitzero leaves out the variable at.
	zero func(p *plan, at unsafe.Pointer) bool
	// isQuantity means that the type has the layout of a quantity.
	isQuantity bool
}

var stringMap = reflect.TypeOf(map[string]string(nil)) //nolint:modernize // not every TinyGo has reflect.TypeFor

// plans caches the plans of all types that were used.
var plans = struct {
	sync.Mutex
	of map[reflect.Type]*plan // guarded by Mutex; a plan is immutable after the lock is released
}{of: map[reflect.Type]*plan{}}

// planOf returns the plan of a type.
func planOf(t reflect.Type) *plan {
	plans.Lock()
	defer plans.Unlock()
	return makePlan(t)
}

// makePlan is planOf under the lock. A type that contains itself finds its own
// unfinished plan.
func makePlan(t reflect.Type) *plan {
	if p := plans.of[t]; p != nil {
		return p
	}
	p := newPlan(t)
	plans.of[t] = p
	if !p.byName(t) {
		p.byKind(t)
		p.byMethods(t)
	}
	if p.zero == nil {
		p.zero = isZero
	}
	return p
}

func newPlan(t reflect.Type) *plan {
	p := &plan{typ: t, kind: t.Kind(), size: t.Size(), nowhere: reflect.New(t).Interface()}
	p.nowhere = p.pointerTo(nil)
	return p
}

// pointerTo returns at as a pointer to the plan's type. reflect.NewAt takes
// longer, and TinyGo lacks it. In all compilers, an interface consists of two
// words: a type and, for pointer types, the pointer.
func (p *plan) pointerTo(at unsafe.Pointer) any {
	i := p.nowhere
	(*[2]unsafe.Pointer)(unsafe.Pointer(&i))[1] = at
	return i
}

// valueAt returns the variable at, which has the plan's type, as a
// reflect.Value.
func (p *plan) valueAt(at unsafe.Pointer) reflect.Value {
	return reflect.ValueOf(p.pointerTo(at)).Elem()
}

// byKind sets the plan of a type without methods.
func (p *plan) byKind(t reflect.Type) {
	p.decode, p.encode = scalarCodec(t)
	switch t.Kind() {
	case reflect.String:
		p.decode, p.encode = decodeString, encodeString
	case reflect.Pointer:
		p.elem, p.nils = makePlan(t.Elem()), true
		p.decode, p.encode = decodePointer, encodePointer
	case reflect.Interface:
		p.decode, p.encode, p.nils = decodeInterface, encodeInterface, true
	case reflect.Slice:
		p.elem, p.nils = makePlan(t.Elem()), true
		p.decode, p.encode = decodeSlice, encodeSlice
	case reflect.Array:
		p.elem = makePlan(t.Elem())
		p.decode, p.encode = decodeArray, encodeArray
	case reflect.Map:
		p.mapping(t)
	case reflect.Struct:
		if t == timeType {
			p.decode, p.encode = decodeTime, encodeTime
			return
		}
		p.structure(t)
	default: // scalars and unsupported types
	}
}

func (p *plan) mapping(t reflect.Type) {
	p.nils = true
	p.key, p.elem = keysOf(t.Key()), makePlan(t.Elem())
	switch p.decode, p.encode = decodeMap, encodeMap; {
	case t == stringMap:
		p.decode, p.encode = decodeStringMap, encodeStringMap
	case p.elem.isQuantity && makePlan(t.Key()).isText:
		p.decode = decodeQuantities
	}
}

func (p *plan) structure(t reflect.Type) {
	fields := fieldsOf(t)
	for i := range fields {
		fields[i].place(t)
		fields[i].findEmpty()
		if fields[i].plan = makePlan(fields[i].typ); fields[i].quoted {
			fields[i].plan = quoted(fields[i].plan)
		}
		fields[i].isText = fields[i].plan.isText
	}
	p.fields, p.byKey = fields, newFieldTable(fields)
	p.decode, p.encode = decodeStruct, encodeStruct
	if len(fields) == 0 && hidesAll(t) {
		p.fields, p.encode = nil, encodeNothing
	}
}

// hidesAll reports whether a struct has fields but exports none of them. Its
// content would be lost.
func hidesAll(t reflect.Type) bool {
	for i := 0; i < t.NumField(); i++ {
		if sf := t.Field(i); sf.IsExported() || sf.Anonymous {
			return false
		}
	}
	return t.NumField() > 0
}
