package wire

import (
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// byName plans for types of apimachinery that nearly every object has several of,
// and reports whether t is one. Their methods go by way of encoding/json, which
// takes five times as long as the rest of the field. They are known by name: a
// small module does not import them.
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
	default:
		return false
	}
	return true
}

// planKubeTime plans for metav1.Time, a struct of a time.Time: a zero one is
// null, and null a zero one.
func planKubeTime(p *plan) {
	p.nils = true
	p.zero = func(_ *plan, at unsafe.Pointer) bool { return (*time.Time)(at).IsZero() }
	p.encode = func(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
		t := *(*time.Time)(at) // its only field
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

// planIntOrString plans for intstr.IntOrString: an int64 (0 is the
// number), a number and a text.
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

// planFields plans for metav1.FieldsV1, a struct of JSON: each answer to a write has
// some. Its method would copy the text once more.
func planFields(p *plan, t reflect.Type) {
	p.byKind(t)
	p.byMethods(t)
	if t.NumField() != 1 || t.Field(0).Type != reflect.TypeOf([]byte(nil)) { //nolint:modernize // not every TinyGo has reflect.TypeFor
		return // of another version
	}
	p.takesNil = false // null leaves it as it is
	p.decode = func(_ *plan, d *decoder, at unsafe.Pointer) error {
		size := 2 * (Skip(d.b, d.pos) - d.pos) // enough for most: names of fields, and empty maps
		js, err := appendAsJSON(make([]byte, 0, size), d)
		if err == nil {
			*(*[]byte)(at) = js // its only field
		}
		return err
	}
}

// quantity has the form of a resource.Quantity: a number and its exponent, a number that
// these cannot hold, text that was made of it, and how that is made.
type quantity struct {
	value        int64
	scale        int32
	big          unsafe.Pointer
	text, format string
}

var quantityType = reflect.TypeOf(quantity{}) //nolint:modernize // not every TinyGo has reflect.TypeFor

// planQuantity plans for resource.Quantity. There are few different ones, and
// parsing is dear: what was read is kept.
func planQuantity(p *plan, t reflect.Type) {
	p.byKind(t)
	p.byMethods(t)
	if !slices.Equal(appendForm(nil, t, 0), appendForm(nil, quantityType, 0)) {
		return // of another version
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
		if into.big == nil { // a copy would share that
			known.put(string(text), *into)
		}
		return nil
	}
}

// quantities are some of those that were read: of those that begin alike, the last one.
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

// slotOf is where a text is kept.
func slotOf(text string) uint64 { return loadUpTo8(text) * 0x9e3779b97f4a7c15 >> 58 }

// variable is one within a struct.
type variable struct {
	kind   reflect.Kind
	offset uintptr
}

// appendForm appends the variables that one of a type is made of.
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
