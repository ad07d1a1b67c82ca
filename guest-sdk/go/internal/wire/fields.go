// SPDX-License-Identifier: Apache-2.0

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

// field is one key of a struct in msgpack.
type field struct {
	name     string
	tagged   bool  // the name comes from a tag
	index    []int // path through embedded structs
	offset   uintptr
	indirect bool // the path leads through a pointer; offset is not valid
	// width is the number of bytes of the field, from word on, that are all 0
	// if the field is empty for omitempty. It is 0 if the field is never left
	// out, -1 if isEmpty must decide, and isMap for a map, which is also left
	// out if it has no entries.
	width     int
	word      uintptr
	typ       reflect.Type
	omitEmpty bool
	omitZero  bool
	quoted    bool // the option "string": a scalar as JSON in a string
	isText    bool // copy of plan.isText
	plan      *plan
}

// fieldsOf lists the fields of a struct, named by the msgpack tag, otherwise by
// the json tag, otherwise by the Go name. Fields of embedded structs without a
// name belong to the outer struct. For several fields of one name, the rule is
// that of encoding/json: the least nested one wins, then the tagged one;
// otherwise all are ignored.
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

// compare returns a negative number if f takes precedence over another field of
// the same name.
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

// appendFields appends the fields of t. outer is the path to t, and within has
// the types that embed it.
func appendFields(list []field, t reflect.Type, outer []int, within []reflect.Type) []field {
	if slices.Contains(within, t) {
		return list // t embeds itself
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

// place determines the offset of the field in a struct of type t.
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

// findEmpty determines how to check whether the field is empty.
func (f *field) findEmpty() {
	const pointer = unsafe.Sizeof(uintptr(0))
	switch k := f.typ.Kind(); {
	case !f.omitEmpty, k == reflect.Struct && f.typ != timeType:
	case k == reflect.Map:
		f.width = isMap
	case k == reflect.Pointer, k == reflect.Interface: // nil is a zero word
		f.width = int(pointer)
	case k == reflect.String, k == reflect.Slice: // an address and a length; the length decides
		f.width, f.word = int(pointer), pointer
	case k >= reflect.Bool && k <= reflect.Float64:
		f.width = int(f.typ.Size())
	default: // isEmpty decides
		f.width = -1
	}
}

// empty reports whether omitempty leaves out the field at the given address.
func (f *field) empty(at unsafe.Pointer) bool {
	if f.width == 8 { // most fields; inlined into the loop
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

// isScalar reports whether the option "string" applies to the type.
func isScalar(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := t.Kind()
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}

// structOf returns the struct type t, or the struct type that t points to, or
// nil.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == timeType {
		return nil
	}
	return t
}

// behind returns the address of a field that lies behind a pointer, in the
// struct at, whose plan is p. If such a pointer is nil, it returns nil; if fill
// is set, it allocates the struct instead, for decoding.
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
