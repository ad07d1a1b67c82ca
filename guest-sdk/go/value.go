// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Type is the type of a Value.
type Type uint8

// The types of a Value.
const (
	TypeAbsent Type = iota // there is no value at the path
	TypeNil
	TypeBool
	TypeInt
	TypeFloat
	TypeString
	TypeArray
	TypeMap
)

// Value is a view of one value in a message. Each method decodes only the value
// that it returns. It takes a path of map keys that starts at the value;
// without a path it reads the value itself. A value that is absent, nil, or of
// another type reads as the zero value. The zero Value is absent.
//
// The object that Reconcile receives, and every Value from it, is valid until
// Reconcile returns, because the host then reuses the memory. Strings, decoded
// values and all results of the Client are copies and stay valid.
type Value struct {
	// view starts with the value; other bytes may follow it.
	view []byte
}

// At returns the value at the path.
func (v Value) At(path ...string) Value { return Value{wire.Locate(v.view, path)} }

// Type returns the type of the value at the path.
func (v Value) Type(path ...string) Type {
	at := wire.At(v.view, path)
	if len(at) == 0 {
		return TypeAbsent
	}
	return Type(wire.TypeOf(at))
}

// Exists reports whether the value at the path is present and not nil.
func (v Value) Exists(path ...string) bool { return v.Type(path...) > TypeNil }

// String returns the string at the path.
func (v Value) String(path ...string) string {
	s, _ := wire.StringBytes(wire.At(v.view, path))
	return string(s)
}

// Int returns the integer at the path. It also accepts a float with an integral
// value.
func (v Value) Int(path ...string) int64 {
	i, _ := wire.ReadInt(wire.At(v.view, path))
	return i
}

// Float returns the number at the path. It also accepts an integer.
func (v Value) Float(path ...string) float64 {
	f, _ := wire.ReadFloat(wire.At(v.view, path))
	return f
}

// Bool returns the bool at the path.
func (v Value) Bool(path ...string) bool {
	b, ok := wire.ReadBool(wire.At(v.view, path))
	return b && ok
}

// Time returns the time at the path, which Kubernetes encodes as a string in
// RFC 3339, or the zero time if there is none.
func (v Value) Time(path ...string) time.Time {
	s, ok := wire.StringBytes(wire.At(v.view, path))
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, string(s))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Len returns the number of elements of the array, or of keys of the map, at
// the path.
func (v Value) Len(path ...string) int {
	n, _ := wire.Len(wire.At(v.view, path))
	return max(n, 0)
}

// Entries iterates over the map at the path: for key, value := range
// v.Entries("data").
func (v Value) Entries(path ...string) func(yield func(key string, value Value) bool) {
	at := wire.At(v.view, path)
	return func(yield func(string, Value) bool) {
		if wire.TypeOf(at) != wire.Map {
			return
		}
		for it := wire.Walk(at); it.Next(); {
			if !yield(string(it.Key), Value{it.Value}) {
				return
			}
		}
	}
}

// Elements iterates over the array at the path: for i, e := range
// v.Elements("spec", "containers").
func (v Value) Elements(path ...string) func(yield func(i int, element Value) bool) {
	at := wire.At(v.view, path)
	return func(yield func(int, Value) bool) {
		if wire.TypeOf(at) != wire.Array {
			return
		}
		for it := wire.Walk(at); it.Next(); {
			if !yield(it.Index, Value{it.Value}) {
				return
			}
		}
	}
}

// Strings returns the strings of the array at the path. It skips elements of
// other types.
func (v Value) Strings(path ...string) []string {
	at := wire.At(v.view, path)
	if wire.TypeOf(at) != wire.Array {
		return nil
	}
	var list []string
	for it := wire.Walk(at); it.Next(); {
		if s, ok := wire.StringBytes(it.Value); ok {
			list = append(list, string(s))
		}
	}
	return list
}

// StringMap returns the map at the path. It skips entries whose value is not a
// string. It returns nil if there is no map.
func (v Value) StringMap(path ...string) map[string]string {
	at := wire.At(v.view, path)
	if wire.TypeOf(at) != wire.Map {
		return nil
	}
	m := map[string]string{}
	for it := wire.Walk(at); it.Next(); {
		if s, ok := wire.StringBytes(it.Value); ok {
			m[string(it.Key)] = string(s)
		}
	}
	return m
}

// Decode decodes the value at the path into the variable that into points to.
// It follows the rules of encoding/json and supports its types, so also the
// types of k8s.io/api: structs with msgpack or json tags, slices, maps,
// pointers, strings, numbers, bools, []byte (base64, as in a Secret), any, and
// types with methods of their own (UnmarshalJSON, UnmarshalText). time.Time is
// read from RFC 3339. Unlike encoding/json, it matches the case of keys.
//
// An absent value does not change the variable. Keys without a struct field are
// ignored. A value of the wrong type is an error that names its path. Decode
// costs a hundred times as much as reading one field: decode only the part that
// you need.
func (v Value) Decode(into any, path ...string) error {
	at := wire.Locate(v.view, path)
	if len(at) == 0 {
		return nil
	}
	return wire.DecodeInto(at, into)
}

// Raw returns the msgpack of the value, or nil if it is absent. The caller must
// not change it. It is valid as long as v is.
func (v Value) Raw() []byte { return wire.Trim(v.view) }

// Clone returns a copy that stays valid after the run.
func (v Value) Clone() Value { return Value{append([]byte(nil), v.Raw()...)} }

// AppendMsgpack lets a Value be part of a value to send.
func (v Value) AppendMsgpack(dst []byte) ([]byte, error) {
	raw := v.Raw()
	if raw == nil {
		return wire.AppendNil(dst), nil
	}
	return append(dst, raw...), nil
}

// DecodeMsgpack lets a struct field be a Value, which stays encoded.
func (v *Value) DecodeMsgpack(b []byte) error {
	*v = Value{b}.Clone()
	return nil
}

// NewValue encodes v and returns a view of it; see Map for the supported types.
func NewValue(v any) (Value, error) {
	const often = 1 << 10 // bytes; enough for a small object
	b, err := wire.Append(make([]byte, 0, often), v)
	if err != nil {
		return Value{}, err
	}
	return Value{b}, wire.Check(b)
}

// Set sets the value at the path. It replaces v by a changed copy: the source
// of v, and other copies of v, do not change. Set creates missing maps on the
// path, and preserves all other fields, including unknown ones. If the value
// cannot be sent (see Map), or if the path leads into something other than a
// map, Set returns an error and does not change v.
func (v *Value) Set(value any, path ...string) error {
	val, err := wire.Append(nil, value)
	if err != nil {
		return err
	}
	b, err := wire.Set(make([]byte, 0, len(v.Raw())+len(val)+64), v.Raw(), path, val)
	if err != nil {
		return err
	}
	v.view = b
	return nil
}

// Remove removes the value at the path. It replaces v by a changed copy. If the
// value is absent, Remove does nothing.
func (v *Value) Remove(path ...string) {
	if len(v.At(path...).view) == 0 || len(path) == 0 {
		return
	}
	if b, err := wire.Remove(nil, v.view, path); err == nil {
		v.view = b
	}
}

// Decode returns the value at the path as a T; see Value.Decode for the
// supported types. An absent value is T's zero value.
func Decode[T any](v Value, path ...string) (T, error) {
	var t T
	err := v.Decode(&t, path...)
	return t, err
}

// Map is a value to send, for example an object, in the structure of its YAML.
// Values to send may be nil, bools, numbers, strings, time.Time, []byte (sent
// in base64), slices, maps, structs with msgpack or json tags, pointers to
// these, any Value, Object or *Builder, and types with MarshalJSON or
// MarshalText. The rules are those of encoding/json, so the types of k8s.io/api
// work too. In addition, omitempty leaves out a zero time.Time. Numbers must be
// finite and fit into an int64. The call that sends a value returns an error
// for all other types, and for structs without any field to send.
type Map = map[string]any

// MarshalJSON lets encoding/json encode a Value. An absent value becomes null.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v.view) == 0 {
		return []byte("null"), nil
	}
	return wire.AppendAsJSON(nil, v.view)
}

// UnmarshalJSON lets encoding/json decode a Value.
func (v *Value) UnmarshalJSON(js []byte) error {
	b, err := wire.AppendJSON(nil, js)
	if err == nil {
		err = wire.Check(b)
	}
	if err != nil {
		return err
	}
	v.view = b
	return nil
}
