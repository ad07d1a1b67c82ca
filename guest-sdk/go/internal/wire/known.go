// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// byName sets the plan of types of apimachinery that occur in nearly every
// object, and reports whether t is one of them. Their own methods use
// encoding/json, which takes five times as long as the rest of the field. The
// types are recognized by name, so that a small module need not import them.
func (p *plan) byName(t reflect.Type) bool {
	switch t.PkgPath() + "." + t.Name() {
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Time":
		planKubeTime(p)
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		planIntOrString(p, t)
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		planQuantity(p, t)
	case "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":
		planFields(p, t)
	case "k8s.io/apimachinery/pkg/runtime.RawExtension", "encoding/json.RawMessage":
		planOpaque(p, t)
	default:
		return false
	}
	return true
}

// planKubeTime sets the plan of metav1.Time, a struct around a time.Time. The
// zero time and null are equivalent.
func planKubeTime(p *plan) {
	p.nils = true
	p.zero = func(_ *plan, at unsafe.Pointer) bool { return (*time.Time)(at).IsZero() }
	p.encode = func(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
		t := *(*time.Time)(at) // the only field of the struct
		if t.IsZero() {
			return AppendNil(dst), nil
		}
		return appendTime(dst, t), nil
	}
	p.decode = func(p *plan, d *decoder, at unsafe.Pointer) error {
		t, err := d.time(p.typ)
		if err == nil {
			*(*time.Time)(at) = t.Local()
		}
		return err
	}
}

// planIntOrString sets the plan of intstr.IntOrString: an int64 for the type (0
// is a number), a number and a string.
func planIntOrString(p *plan, t reflect.Type) {
	number, text := t.Field(1), t.Field(2)
	numberPlan, textPlan := makePlan(number.Type), makePlan(text.Type)
	p.encode = func(_ *plan, dst []byte, at unsafe.Pointer, depth int) ([]byte, error) {
		if *(*int64)(at) == 0 {
			return numberPlan.encode(numberPlan, dst, unsafe.Add(at, number.Offset), depth)
		}
		return textPlan.encode(textPlan, dst, unsafe.Add(at, text.Offset), depth)
	}
	p.decode = func(p *plan, d *decoder, at unsafe.Pointer) error {
		kind := (*int64)(at)
		if TypeOf(d.b[d.pos:]) == String {
			*kind = 1
			return textPlan.decode(textPlan, d, unsafe.Add(at, text.Offset))
		}
		*kind = 0
		return numberPlan.decode(numberPlan, d, unsafe.Add(at, number.Offset))
	}
}

// planFields sets the plan of metav1.FieldsV1, a struct with JSON, which occurs
// in each answer to a write. The method of the type would copy the text once
// more.
func planFields(p *plan, t reflect.Type) {
	p.byKind(t)
	p.byMethods(t)
	if t.NumField() != 1 || t.Field(0).Type != reflect.TypeOf([]byte(nil)) { //nolint:modernize // not every TinyGo has reflect.TypeFor
		return // an unknown version of the type
	}
	p.takesNil = false // null does not change it
	p.decode = func(_ *plan, d *decoder, at unsafe.Pointer) error {
		size := 2 * (Skip(d.b, d.pos) - d.pos) // enough for most: field names and empty maps
		js, err := appendAsJSON(make([]byte, 0, size), d)
		if err == nil {
			*(*[]byte)(at) = js // the only field of the struct
		}
		return err
	}
}

// quantity has the layout of a resource.Quantity: a number and its exponent, a
// big number for values that do not fit, the cached text, and the format.
type quantity struct {
	value        int64
	scale        int32
	big          unsafe.Pointer
	text, format string
}

var quantityType = reflect.TypeOf(quantity{}) //nolint:modernize // not every TinyGo has reflect.TypeFor

// planQuantity sets the plan of resource.Quantity. Few different quantities
// occur, and parsing is expensive, so parsed quantities are cached.
func planQuantity(p *plan, t reflect.Type) {
	p.byKind(t)
	p.byMethods(t)
	if !slices.Equal(appendForm(nil, t, 0), appendForm(nil, quantityType, 0)) {
		return // an unknown version of the type
	}
	p.isQuantity = true
	parse := p.decode
	var known quantities
	p.decode = func(p *plan, d *decoder, at unsafe.Pointer) error {
		start := d.pos
		text, ok := d.text()
		if !ok {
			return parse(p, d, at)
		}
		into := (*quantity)(at)
		if known.get(text, into) {
			return nil
		}
		d.pos = start
		if err := parse(p, d, at); err != nil {
			return err
		}
		if into.big == nil { // copies would share the pointer
			known.put(string(text), *into)
		}
		return nil
	}
}

// quantities caches parsed quantities. Each slot holds the last text with its
// hash.
type quantities struct {
	mu   sync.Mutex
	list [64]struct { // guarded by mu
		text  string
		value quantity
	}
}

func (q *quantities) get(text []byte, into *quantity) bool {
	q.mu.Lock()
	e := &q.list[slotOf(unsafeString(text))]
	found := equal(e.text, unsafeString(text)) && len(text) > 0
	if found {
		*into = e.value
	}
	q.mu.Unlock()
	return found
}

func (q *quantities) put(text string, value quantity) {
	q.mu.Lock()
	e := &q.list[slotOf(text)]
	e.text, e.value = text, value
	q.mu.Unlock()
}

// slotOf returns the slot of a text.
func slotOf(text string) uint64 { return loadUpTo8(text) * 0x9e3779b97f4a7c15 >> 58 }

// variable is a scalar within a struct.
type variable struct {
	kind   reflect.Kind
	offset uintptr
}

// appendForm appends the scalars of which a type consists.
func appendForm(list []variable, t reflect.Type, offset uintptr) []variable {
	kind := t.Kind()
	if kind == reflect.Pointer {
		kind = reflect.UnsafePointer
	}
	if kind != reflect.Struct {
		return append(list, variable{kind, offset})
	}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		list = appendForm(list, f.Type, offset+f.Offset)
	}
	return list
}
