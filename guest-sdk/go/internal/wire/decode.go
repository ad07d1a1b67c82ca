package wire

import (
	"encoding/base64"
	"errors"
	"math"
	"reflect"
	"strconv"
	"time"
)

// Decode decodes a whole message into the Go types of JSON: nil, bool, int64,
// float64, string, []any and map[string]any. It refuses what Check refuses,
// and maps with a key twice.
func Decode(b []byte) (any, error) {
	if err := Check(b); err != nil {
		return nil, err
	}
	return decodeAny(b)
}

// decodeAny decodes the value that v starts with.
func decodeAny(v []byte) (any, error) {
	switch TypeOf(v) {
	case Nil:
		return nil, nil
	case Bool:
		b, _ := ReadBool(v)
		return b, nil
	case Int:
		if i, ok := readInt(v); ok {
			return i, nil
		}
		return nil, ErrNumber
	case Float:
		if f, ok := ReadFloat(v); ok {
			return f, nil
		}
	case String:
		if s, ok := StringBytes(v); ok {
			return string(s), nil
		}
	case Array:
		return decodeArray(v)
	case Map:
		return decodeMap(v)
	case Invalid:
		if len(v) > 0 {
			return nil, ErrType
		}
	}
	return nil, ErrTruncated
}

func decodeArray(v []byte) (any, error) {
	list := []any{}
	it := Walk(v)
	for it.Next() {
		e, err := decodeAny(it.Value)
		if err != nil {
			return nil, within(strconv.Itoa(it.Index), err)
		}
		list = append(list, e)
	}
	return list, it.err()
}

func decodeMap(v []byte) (any, error) {
	m := map[string]any{}
	it := Walk(v)
	for it.Next() {
		key := string(it.Key)
		if _, ok := m[key]; ok {
			return nil, within(key, ErrDuplicate)
		}
		e, err := decodeAny(it.Value)
		if err != nil {
			return nil, within(key, err)
		}
		m[key] = e
	}
	return m, it.err()
}

func (it *Iter) err() error {
	if it.bad || it.n < 0 {
		return ErrTruncated
	}
	return nil
}

// DecodeInto decodes the value that v starts with into what the pointer into
// points to: see Append for the types, and any. nil leaves it as it is, keys
// that a struct does not have are ignored, and a value of another type or out
// of the range of its target is an error.
func DecodeInto(v []byte, into any) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return errors.New("target of a decode is not a pointer")
	}
	if Skip(v, 0) < 0 {
		return ErrTruncated
	}
	return decodeReflect(v, p.Elem(), 0)
}

// Decoder is a type that reads itself from the value that v starts with. It
// copies what it keeps.
type Decoder interface {
	DecodeMsgpack(v []byte) error
}

func decodeReflect(v []byte, into reflect.Value, depth int) error {
	if depth > MaxDepth {
		return ErrTooDeep
	}
	if into.Kind() == reflect.Struct && into.CanAddr() {
		if d, ok := into.Addr().Interface().(Decoder); ok {
			return d.DecodeMsgpack(v)
		}
	}
	if TypeOf(v) == Nil {
		return nil
	}
	switch into.Kind() {
	case reflect.Pointer:
		if into.IsNil() {
			into.Set(reflect.New(into.Type().Elem()))
		}
		return decodeReflect(v, into.Elem(), depth+1)
	case reflect.Struct:
		return decodeStruct(v, into, depth)
	case reflect.Map:
		return decodeMapReflect(v, into, depth)
	case reflect.Slice:
		return decodeSlice(v, into, depth)
	case reflect.Interface:
		if into.NumMethod() > 0 {
			return errors.New("target is an interface with methods: " + into.Type().String())
		}
		e, err := decodeAny(v)
		if err == nil && e != nil {
			into.Set(reflect.ValueOf(e))
		}
		return err
	default:
		return decodeScalar(v, into)
	}
}

func decodeScalar(v []byte, into reflect.Value) error {
	ok := false
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
	case reflect.String:
		var s []byte
		if s, ok = StringBytes(v); ok {
			into.SetString(string(s))
		}
	default: // fits nowhere
	}
	if !ok {
		return mismatch(v, into)
	}
	return nil
}

func mismatch(v []byte, into reflect.Value) error {
	return errors.New(TypeOf(v).String() + " does not fit into " + into.Type().String())
}

func decodeStruct(v []byte, into reflect.Value, depth int) error {
	if into.Type() == timeType {
		return decodeTime(v, into)
	}
	if TypeOf(v) != Map {
		return mismatch(v, into)
	}
	fields := fieldsOf(into.Type())
	for it := Walk(v); it.Next(); {
		for i := range fields {
			if fields[i].name != string(it.Key) {
				continue
			}
			if fv, ok := fields[i].in(into, true); ok {
				if err := decodeReflect(it.Value, fv, depth+1); err != nil {
					return within(string(it.Key), err)
				}
			}
			break
		}
	}
	return nil
}

func decodeTime(v []byte, into reflect.Value) error {
	s, ok := StringBytes(v)
	if !ok {
		return mismatch(v, into)
	}
	t, err := time.Parse(time.RFC3339, string(s))
	if err == nil {
		into.Set(reflect.ValueOf(t))
	}
	return err
}

func decodeMapReflect(v []byte, into reflect.Value, depth int) error {
	t := into.Type()
	if TypeOf(v) != Map || t.Key().Kind() != reflect.String {
		return mismatch(v, into)
	}
	n, _ := Len(v)
	m := reflect.MakeMapWithSize(t, min(n, 64)) // grows if the bytes are there
	for it := Walk(v); it.Next(); {
		e := reflect.New(t.Elem()).Elem()
		if err := decodeReflect(it.Value, e, depth+1); err != nil {
			return within(string(it.Key), err)
		}
		k := reflect.New(t.Key()).Elem()
		k.SetString(string(it.Key))
		m.SetMapIndex(k, e)
	}
	into.Set(m)
	return nil
}

func decodeSlice(v []byte, into reflect.Value, depth int) error {
	t := into.Type()
	if s, ok := StringBytes(v); ok && t.Elem().Kind() == reflect.Uint8 {
		b, err := base64.StdEncoding.DecodeString(string(s))
		if err == nil {
			into.SetBytes(b)
		}
		return err
	}
	if TypeOf(v) != Array {
		return mismatch(v, into)
	}
	n, _ := Len(v) // each element has a byte: Skip has seen them all
	list := reflect.MakeSlice(t, n, n)
	for it := Walk(v); it.Next(); {
		if err := decodeReflect(it.Value, list.Index(it.Index), depth+1); err != nil {
			return within(strconv.Itoa(it.Index), err)
		}
	}
	into.Set(list)
	return nil
}

var typeNames = [...]string{"invalid value", "nil", "bool", "integer", "float", "string", "array", "map"}

// String returns the type's name as it stands in messages for people.
func (t Type) String() string { return typeNames[min(int(t), len(typeNames)-1)] }
