package wire

import (
	"reflect"
	"sync"
	"unsafe"
)

// plan says how a Go type is read and written. Finding that out takes longer
// than doing it, so it is done once for a type.
type plan struct {
	typ  reflect.Type
	kind reflect.Kind // of typ, as size
	size uintptr
	// nowhere is a nil pointer to the type.
	nowhere any
	// decode reads the value that d is at into the variable at, which is of type
	// typ, and leaves d behind the value. It is not called for nil, unless takesNil.
	decode   func(p *plan, d *decoder, at unsafe.Pointer) error
	takesNil bool
	isText   bool        // decode is decodeString
	elem     *plan       // of what a pointer, list or map is to, or a quoted field is
	key      *keys       // of a map; nil if its keys are not text
	fields   []field     // of a struct; nil where none can be written, though it has some
	byKey    *fieldTable // the same
	byMethod bool        // methods of the type write it
	// nils says that nil makes v its zero value; else nil leaves it as it is.
	nils bool
	// encode appends the variable at, which is of type typ and does not change.
	encode encodeFunc
	// zero says of the variable at whether omitzero leaves it out.
	zero func(p *plan, at unsafe.Pointer) bool
	// isQuantity says that a variable has the form of a quantity.
	isQuantity bool
}

var stringMap = reflect.TypeOf(map[string]string(nil)) //nolint:modernize // not every TinyGo has reflect.TypeFor

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

// pointerTo returns at as a pointer to the plan's type. reflect.NewAt does that, but
// takes longer, and TinyGo does not have it. An interface is two words in all
// compilers: a type, and for types that are pointers the pointer.
func (p *plan) pointerTo(at unsafe.Pointer) any {
	i := p.nowhere
	(*[2]unsafe.Pointer)(unsafe.Pointer(&i))[1] = at
	return i
}

// valueAt is the variable at, which is of the plan's type.
func (p *plan) valueAt(at unsafe.Pointer) reflect.Value {
	return reflect.ValueOf(p.pointerTo(at)).Elem()
}

// byKind plans for a type without methods.
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
	default: // scalars, and what has no form
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
