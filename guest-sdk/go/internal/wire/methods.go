package wire

import (
	"reflect"
	"unsafe"
)

// Decoder is a type that reads itself from the value that v starts with. It
// copies what it keeps.
type Decoder interface {
	DecodeMsgpack(v []byte) error
}

// Appender is a type that writes itself: one whole msgpack value.
type Appender interface {
	AppendMsgpack(dst []byte) ([]byte, error)
}

// The interfaces of encoding and encoding/json, which a small module does not
// import.
type (
	jsonMarshaler   interface{ MarshalJSON() ([]byte, error) }
	jsonUnmarshaler interface{ UnmarshalJSON(js []byte) error }
	textMarshaler   interface{ MarshalText() ([]byte, error) }
	textUnmarshaler interface{ UnmarshalText(text []byte) error }
)

// byMethods lets the methods of a type have their say, in the order of
// encoding/json. They are looked for by pointer, which has those of values too;
// the plan of a pointer or an interface is that of what is behind it.
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
			return p.pointerTo(at).(interface{ IsZero() bool }).IsZero() //nolint:forcetypeassert // own is one
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
	return p.pointerTo(at).(Appender).AppendMsgpack(dst) //nolint:forcetypeassert // byMethods has looked
}

func encodeByJSON(p *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	js, err := p.pointerTo(at).(jsonMarshaler).MarshalJSON() //nolint:forcetypeassert // byMethods has looked
	if err != nil {
		return nil, err
	}
	return AppendJSON(dst, js)
}

func encodeByText(p *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	text, err := p.pointerTo(at).(textMarshaler).MarshalText() //nolint:forcetypeassert // byMethods has looked
	if err != nil {
		return nil, err
	}
	return AppendText(dst, string(text))
}

func decodeDecoder(p *plan, d *decoder, at unsafe.Pointer) error {
	view := d.b[d.pos:]
	d.skip()
	return p.pointerTo(at).(Decoder).DecodeMsgpack(view) //nolint:forcetypeassert // byMethods has looked
}

func decodeByJSON(p *plan, d *decoder, at unsafe.Pointer) error {
	js, err := appendAsJSON(d.json[:0], d)
	if err != nil {
		return err
	}
	d.json = js
	return p.pointerTo(at).(jsonUnmarshaler).UnmarshalJSON(js) //nolint:forcetypeassert // byMethods has looked
}

func decodeByText(p *plan, d *decoder, at unsafe.Pointer) error {
	s, ok := d.text()
	if !ok {
		return d.mismatch(p.typ)
	}
	return p.pointerTo(at).(textUnmarshaler).UnmarshalText(s) //nolint:forcetypeassert // byMethods has looked
}
