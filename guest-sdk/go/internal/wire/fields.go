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
	// word is where the struct has a word that is 0 in an empty field; -1 where that is
	// not so simple.
	word      int
	typ       reflect.Type
	omitEmpty bool
	omitZero  bool
	quoted    bool // the option "string": a scalar as the text of its JSON
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

// placeWord finds out which word tells whether the field is empty.
func (f *field) placeWord() {
	f.word = -1
	if f.indirect || !f.omitEmpty {
		return
	}
	switch f.typ.Kind() {
	case reflect.Pointer, reflect.Map:
		f.word = int(f.offset)
	case reflect.String, reflect.Slice: // an address and a length
		f.word = int(f.offset + unsafe.Sizeof(f.offset))
	default: // isEmpty looks
	}
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

// in returns the field of the struct v; false if an embedded pointer on the way
// is nil. fill is for writing: it makes what such a pointer is to point to.
func (f *field) in(v reflect.Value, fill bool) (reflect.Value, bool) {
	if len(f.index) == 1 {
		return v.Field(f.index[0]), true
	}
	for i, x := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !fill || !v.CanSet() { // an embedded pointer to an unexported type
					return v, false
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v, !fill || v.CanSet()
}
