// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"unsafe"
)

// Decoder is a type that decodes itself from the first value of v. It must copy
// the bytes that it retains.
type Decoder interface {
	DecodeMsgpack(v []byte) error
}

// Appender is a type that encodes itself as one complete msgpack value.
type Appender interface {
	AppendMsgpack(dst []byte) ([]byte, error)
}

// The interfaces of encoding and encoding/json, defined here because a small
// module should not import those packages.
type (
	jsonMarshaler   interface{ MarshalJSON() ([]byte, error) }
	jsonUnmarshaler interface{ UnmarshalJSON(js []byte) error }
	textMarshaler   interface{ MarshalText() ([]byte, error) }
	textUnmarshaler interface{ UnmarshalText(text []byte) error }
)

// byMethods applies the methods of a type to its plan, by the precedence of
// encoding/json. It looks for methods of the pointer type, which include those
// of the value type. The plans of pointers and interfaces use the methods of
// the value that they refer to.
func (p *plan) byMethods(t reflect.Type) {
	if k := t.Kind(); k == reflect.Pointer || k == reflect.Interface || t == timeType {
		return
	}
	own := p.nowhere
	switch own.(type) {
	case Decoder:
		p.decode, p.takesNil = decodeDecoder, true
	case jsonUnmarshaler:
		p.decode, p.takesNil = decodeByJSON, true
	case textUnmarshaler:
		p.decode = decodeByText
	default:
		p.isText = p.kind == reflect.String
	}
	switch own.(type) {
	case Appender:
		p.encode, p.byMethod = encodeAppender, true
	case jsonMarshaler:
		p.encode, p.byMethod = encodeByJSON, true
	case textMarshaler:
		p.encode, p.byMethod = encodeByText, true
	}
	if _, ok := own.(interface{ IsZero() bool }); ok {
		p.zero = func(p *plan, at unsafe.Pointer) bool {
			return p.pointerTo(at).(interface{ IsZero() bool }).IsZero() //nolint:forcetypeassert // checked by own
		}
	}
}

// addressed returns a pointer to v, or to a copy of it.
func addressed(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

func encodeAppender(p *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	return p.pointerTo(at).(Appender).AppendMsgpack(dst) //nolint:forcetypeassert // checked by byMethods
}

func encodeByJSON(p *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	js, err := p.pointerTo(at).(jsonMarshaler).MarshalJSON() //nolint:forcetypeassert // checked by byMethods
	if err != nil {
		return nil, err
	}
	return AppendJSON(dst, js)
}

func encodeByText(p *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	text, err := p.pointerTo(at).(textMarshaler).MarshalText() //nolint:forcetypeassert // checked by byMethods
	if err != nil {
		return nil, err
	}
	return AppendText(dst, string(text))
}

func decodeDecoder(p *plan, d *decoder, at unsafe.Pointer) error {
	view := d.b[d.pos:]
	d.skip()
	return p.pointerTo(at).(Decoder).DecodeMsgpack(view) //nolint:forcetypeassert // checked by byMethods
}

func decodeByJSON(p *plan, d *decoder, at unsafe.Pointer) error {
	js, err := appendAsJSON(d.json[:0], d)
	if err != nil {
		return err
	}
	d.json = js
	return p.pointerTo(at).(jsonUnmarshaler).UnmarshalJSON(js) //nolint:forcetypeassert // checked by byMethods
}

func decodeByText(p *plan, d *decoder, at unsafe.Pointer) error {
	s, ok := d.text()
	if !ok {
		return d.mismatch(p.typ)
	}
	return p.pointerTo(at).(textUnmarshaler).UnmarshalText(s) //nolint:forcetypeassert // checked by byMethods
}
