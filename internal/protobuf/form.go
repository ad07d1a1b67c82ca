// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// form is the representation of a value.
type form uint8

const (
	asMap form = iota
	asText
	asBase64
	asBool
	asInt
	asUint
	asFloat64
	asTime
	asMicroTime
	asDuration
	asQuantity
	asIntOrString
	asJSON   // the bytes of field 1 are JSON
	asOpaque // the bytes of field 1 are opaque JSON
	asList   // field 1 is repeated
)

// value is the type of a value.
type value struct {
	form   form
	fields *Message // of asMap
	elem   *value   // of asList
}

// wire returns the protobuf wire type of values.
func (v *value) wire() protowire.Type {
	switch v.form {
	case asBool, asInt, asUint:
		return protowire.VarintType
	case asFloat64:
		return protowire.Fixed64Type
	default:
		return protowire.BytesType
	}
}

var special = map[reflect.Type]form{
	reflect.TypeFor[metav1.Time]():          asTime,
	reflect.TypeFor[metav1.MicroTime]():     asMicroTime,
	reflect.TypeFor[metav1.Duration]():      asDuration,
	reflect.TypeFor[resource.Quantity]():    asQuantity,
	reflect.TypeFor[intstr.IntOrString]():   asIntOrString,
	reflect.TypeFor[runtime.RawExtension](): asOpaque,
	reflect.TypeFor[metav1.FieldsV1]():      asJSON,
}

// unmarshaler is implemented by types that have their own message in protobuf.
type unmarshaler interface{ Unmarshal(b []byte) error }

// implements reports whether a pointer to the type implements T.
func implements[T any](t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[T]())
}

var kinds = map[reflect.Kind]form{
	reflect.String: asText, reflect.Bool: asBool, reflect.Float64: asFloat64,
	reflect.Int: asInt, reflect.Int32: asInt, reflect.Int64: asInt, reflect.Uint32: asUint, reflect.Uint64: asUint,
}

func (b *builder) value(t reflect.Type) (*value, error) {
	if f, ok := special[t]; ok {
		return &value{form: f}, nil
	}
	if implements[json.Marshaler](t) || implements[encoding.TextMarshaler](t) {
		return nil, fmt.Errorf("type %s has a custom JSON encoding", t)
	}
	if f, ok := kinds[t.Kind()]; ok {
		return &value{form: f}, nil
	}
	switch {
	case t.Kind() == reflect.Struct:
		fields, err := b.message(t, false)
		return &value{form: asMap, fields: fields}, err
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &value{form: asBase64}, nil
	case t.Kind() == reflect.Slice && implements[unmarshaler](t):
		elem, err := b.value(t.Elem())
		return &value{form: asList, elem: elem}, err
	}
	return nil, fmt.Errorf("type %s is unknown", t)
}
