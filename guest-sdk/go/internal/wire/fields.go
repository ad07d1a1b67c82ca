package wire

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

var timeType = reflect.TypeOf(time.Time{}) //nolint:modernize // not every TinyGo has reflect.TypeFor

// field is one key that a struct has in msgpack.
type field struct {
	name      string
	index     []int // the way through embedded structs
	omitEmpty bool
}

// fieldsOf lists the fields of a struct: by the msgpack tag, else the json tag,
// else the Go name. Embedded structs without a name are part of the outer one.
func fieldsOf(t reflect.Type) []field { return appendFields(nil, t, nil) }

func appendFields(list []field, t reflect.Type, outer []int) []field {
	for i := 0; i < t.NumField(); i++ {
		sf := t.Field(i)
		tag, ok := sf.Tag.Lookup("msgpack")
		if !ok {
			tag = sf.Tag.Get("json")
		}
		name, opts, _ := strings.Cut(tag, ",")
		index := append(slices.Clip(outer), i)
		switch {
		case tag == "-":
		case sf.Anonymous && name == "" && structOf(sf.Type) != nil:
			list = appendFields(list, structOf(sf.Type), index)
		case !sf.IsExported():
		default:
			if name == "" {
				name = sf.Name
			}
			omit := strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero")
			list = append(list, field{name: name, index: index, omitEmpty: omit})
		}
	}
	return list
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
