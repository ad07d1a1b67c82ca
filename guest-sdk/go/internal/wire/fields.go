package wire

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"
)

var timeType = reflect.TypeOf(time.Time{}) //nolint:modernize // not every TinyGo has reflect.TypeFor

// field is one key that a struct has in msgpack.
type field struct {
	name     string
	tagged   bool  // the name is that of a tag
	index    []int // the way through embedded structs
	offset   uintptr
	indirect bool // the way leads through a pointer: offset does not count
	// width is how many bytes of the field, from word on, are 0 if it is empty, so that
	// omitempty leaves it out. It is 0 where it is never left out, -1 where that is not so
	// simple, and isMap where a map without entries is left out, too.
	width     int
	word      uintptr
	typ       reflect.Type
	omitEmpty bool
	omitZero  bool
	quoted    bool // the option "string": a scalar as the text of its JSON
	isText    bool // as that of the plan
	plan      *plan
}

// fieldsOf lists the fields of a struct: by the msgpack tag, else the json tag,
// else the Go name. Embedded structs without a name are part of the outer one.
// Of several fields of one name that counts which counts for encoding/json: the
// least embedded one, else the tagged one, else none.
func fieldsOf(t reflect.Type) []field {
	all := appendFields(nil, t, nil, nil)
	list := make([]field, 0, len(all))
	for i := range all {
		hidden := slices.ContainsFunc(all, func(f field) bool {
			return f.name == all[i].name && !slices.Equal(f.index, all[i].index) && f.compare(&all[i]) <= 0
		})
		if !hidden {
			list = append(list, all[i])
		}
	}
	return list
}

// compare is below 0 if f counts rather than a field of the same name.
func (f *field) compare(other *field) int {
	c := cmp.Compare(len(f.index), len(other.index))
	switch {
	case c != 0 || f.tagged == other.tagged:
		return c
	case f.tagged:
		return -1
	}
	return 1
}

// appendFields appends the fields of t, which is embedded by way of outer, the
// types within.
func appendFields(list []field, t reflect.Type, outer []int, within []reflect.Type) []field {
	if slices.Contains(within, t) {
		return list // it embeds itself
	}
	within = append(slices.Clip(within), t)
	for i := 0; i < t.NumField(); i++ {
		sf := t.Field(i)
		tag, ok := sf.Tag.Lookup("msgpack")
		if !ok {
			tag = sf.Tag.Get("json")
		}
		name, rest, _ := strings.Cut(tag, ",")
		index := append(slices.Clip(outer), i)
		switch {
		case tag == "-":
		case sf.Anonymous && name == "" && structOf(sf.Type) != nil:
			list = appendFields(list, structOf(sf.Type), index, within)
		case !sf.IsExported():
		default:
			f := field{name: name, tagged: name != "", index: index, typ: sf.Type}
			if name == "" {
				f.name = sf.Name
			}
			opts := strings.Split(rest, ",")
			f.omitEmpty, f.omitZero = slices.Contains(opts, "omitempty"), slices.Contains(opts, "omitzero")
			f.quoted = slices.Contains(opts, "string") && isScalar(sf.Type)
			list = append(list, f)
		}
	}
	return list
}

// place finds out where the field is in a struct of type t.
func (f *field) place(t reflect.Type) {
	for _, x := range f.index {
		if t.Kind() == reflect.Pointer {
			f.indirect = true
			return
		}
		sf := t.Field(x)
		f.offset += sf.Offset
		t = sf.Type
	}
}

const isMap = -2

// findEmpty finds out how to see that the field is empty.
func (f *field) findEmpty() {
	const pointer = unsafe.Sizeof(uintptr(0))
	switch k := f.typ.Kind(); {
	case !f.omitEmpty, k == reflect.Struct && f.typ != timeType:
	case k == reflect.Map:
		f.width = isMap
	case k == reflect.Pointer, k == reflect.Interface: // nil is a word of 0
		f.width = int(pointer)
	case k == reflect.String, k == reflect.Slice: // an address and a length
		f.width, f.word = int(pointer), pointer
	case k >= reflect.Bool && k <= reflect.Float64:
		f.width = int(f.typ.Size())
	default: // isEmpty looks
		f.width = -1
	}
}

// empty reports whether omitempty leaves the field out, which is at.
func (f *field) empty(at unsafe.Pointer) bool {
	if f.width == 8 { // most fields: this is compiled into the loop
		return *(*uint64)(unsafe.Add(at, f.word)) == 0
	}
	return f.width != 0 && f.isEmpty(at)
}

func (f *field) isEmpty(at unsafe.Pointer) bool {
	switch f.width {
	case 1:
		return *(*uint8)(at) == 0
	case 2:
		return *(*uint16)(at) == 0
	case 4:
		return *(*uint32)(unsafe.Add(at, f.word)) == 0
	case isMap:
		return *(*unsafe.Pointer)(at) == nil || f.plan.valueAt(at).Len() == 0
	}
	return isEmpty(f.plan.valueAt(at))
}

// isScalar reports whether the option "string" has a meaning for the type.
func isScalar(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := t.Kind()
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}

// structOf returns the struct type that t is or points to, or nil.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == timeType {
		return nil
	}
	return t
}

// behind returns the field of the struct at, which is of plan p, where the way leads through
// a pointer; nil if such a pointer is nil. fill is for writing: it makes what such a pointer
// is to point to.
func (f *field) behind(p *plan, at unsafe.Pointer, fill bool) unsafe.Pointer {
	v := p.valueAt(at)
	for _, x := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !fill || !v.CanSet() { // an embedded pointer to an unexported type
					return nil
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	if fill && !v.CanSet() {
		return nil
	}
	return v.Addr().UnsafePointer()
}
