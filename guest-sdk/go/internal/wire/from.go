package wire

import (
	"encoding/base64"
	"errors"
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

func encodeInterface(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.IsNil() {
		return AppendNil(dst), nil
	}
	return appendAny(dst, v.Elem().Interface(), depth+1)
}

func encodeString(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return AppendText(dst, v.String())
}

func encodeTime(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	t := v.Interface().(time.Time) //nolint:forcetypeassert // its plan is for time.Time
	return AppendString(dst, t.UTC().Format(time.RFC3339)), nil
}

func encodeScalar(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	switch v.Kind() {
	case reflect.Bool:
		return AppendBool(dst, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return AppendInt(dst, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return nil, ErrNumber
		}
		return AppendInt(dst, int64(v.Uint())), nil
	case reflect.Float32:
		// The shortest number that is this float32, as JSON has it, not the float64
		// with the same bits.
		f, err := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		if err != nil {
			return nil, ErrNumber
		}
		return appendFinite(dst, f)
	case reflect.Float64:
		return appendFinite(dst, v.Float())
	default:
		return nil, errors.New("Go type " + v.Type().String() + " has no form in msgpack")
	}
}

func encodeBytes(dst []byte, v reflect.Value) []byte {
	return AppendString(dst, base64.StdEncoding.EncodeToString(v.Bytes()))
}

func encodeList(dst []byte, v reflect.Value, depth int, elem *plan) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	n := v.Len()
	dst = AppendArray(dst, n)
	for i := range n {
		var err error
		if dst, err = elem.encode(dst, v.Index(i), depth+1); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}

func encodeStringMap(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	m := v.Interface().(map[string]string) //nolint:forcetypeassert // its plan is for this type
	if m == nil {
		return AppendNil(dst), nil
	}
	return appendMapString(dst, m)
}

func encodeMap(dst []byte, v reflect.Value, depth int, key *keys, elem *plan) ([]byte, error) {
	switch {
	case key == nil:
		return nil, errors.New("Go type " + v.Type().String() + " has keys that are not text")
	case v.IsNil():
		return AppendNil(dst), nil
	case depth > MaxDepth:
		return nil, ErrTooDeep
	}
	m := make(map[string]reflect.Value, v.Len())
	for it := v.MapRange(); it.Next(); {
		name, err := key.write(it.Key())
		if err != nil {
			return nil, err
		}
		m[name] = it.Value()
	}
	dst = AppendMap(dst, len(m))
	for _, e := range sortedEntries(nil, m) {
		var err error
		if dst, err = AppendText(dst, e.key); err == nil {
			dst, err = elem.encode(dst, e.value, depth+1)
		}
		if err != nil {
			return nil, within(e.key, err)
		}
	}
	return dst, nil
}

func encodeStruct(dst []byte, v reflect.Value, depth int, fields []field) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	b := NewBuilder(dst)
	var at unsafe.Pointer
	if v.CanAddr() {
		at = v.Addr().UnsafePointer()
	}
	for i := range fields {
		f := &fields[i]
		if at != nil && f.word >= 0 && *(*uintptr)(unsafe.Add(at, f.word)) == 0 {
			continue // most fields of a PodSpec are empty
		}
		fv, ok := f.in(v, false)
		if !ok || f.omitEmpty && isEmpty(fv) || f.omitZero && f.plan.zero(fv) {
			continue
		}
		b.key(f.name)
		var err error
		if b.b, err = f.plan.encode(b.b, fv, depth+1); err != nil {
			return nil, within(f.name, err)
		}
	}
	return b.End(), nil
}

// encodeNothing is for a struct that would be written as {}, and is not empty.
func encodeNothing(_ []byte, v reflect.Value, _ int) ([]byte, error) {
	return nil, errors.New("Go type " + v.Type().String() + " has no exported field and no MarshalJSON: nothing of it would be written")
}

// isEmpty says what omitempty leaves out: what encoding/json leaves out, and a
// zero time.Time.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return v.Type() == timeType && v.Interface().(time.Time).IsZero()
	default:
		return v.IsZero()
	}
}

// quoted is the plan of a field with the option "string": its JSON as text.
func quoted(p *plan) *plan {
	q := &plan{typ: p.typ, nowhere: p.nowhere, elem: p, nils: p.nils, zero: p.zero, decode: decodeQuoted}
	q.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		val, err := p.encode(nil, v, depth)
		if err != nil || TypeOf(val) == Nil {
			return append(dst, val...), err
		}
		js, err := AppendAsJSON(nil, val)
		return AppendString(dst, string(js)), err
	}
	return q
}

func decodeQuoted(p *plan, d *decoder, at unsafe.Pointer) error {
	s, ok := d.text()
	if !ok {
		return d.mismatch(p.typ)
	}
	val, err := AppendJSON(nil, s)
	if err != nil {
		return err
	}
	inner := decoder{b: val}
	return inner.into(p.elem, at)
}

// keys says how the keys of a map are read from text and written as such.
type keys struct {
	read  func(text string, v reflect.Value) error
	write func(v reflect.Value) (string, error)
}

// keysOf returns how keys of the type are read and written, in the order of
// encoding/json; nil if they cannot be.
func keysOf(t reflect.Type) *keys {
	k := &keys{
		read:  func(text string, v reflect.Value) error { v.SetString(text); return nil },
		write: func(v reflect.Value) (string, error) { return v.String(), nil },
	}
	own := reflect.New(t).Interface()
	_, reads := own.(textUnmarshaler)
	_, writes := own.(textMarshaler)
	if reads {
		k.read = func(text string, v reflect.Value) error {
			return v.Addr().Interface().(textUnmarshaler).UnmarshalText([]byte(text)) //nolint:forcetypeassert // own is one
		}
	}
	switch {
	case t.Kind() == reflect.String: // a string is written as it is, also with methods
	case writes:
		k.write = func(v reflect.Value) (string, error) {
			text, err := addressed(v).Interface().(textMarshaler).MarshalText() //nolint:forcetypeassert // own is one
			return string(text), err
		}
	case reads:
		return nil
	default:
		return numbersAsKeys(t.Kind())
	}
	return k
}

func numbersAsKeys(kind reflect.Kind) *keys {
	switch {
	case kind >= reflect.Int && kind <= reflect.Int64:
		return &keys{
			read: func(text string, v reflect.Value) error {
				i, err := strconv.ParseInt(text, 10, v.Type().Bits())
				v.SetInt(i)
				return err
			},
			write: func(v reflect.Value) (string, error) { return strconv.FormatInt(v.Int(), 10), nil },
		}
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		return &keys{
			read: func(text string, v reflect.Value) error {
				i, err := strconv.ParseUint(text, 10, v.Type().Bits())
				v.SetUint(i)
				return err
			},
			write: func(v reflect.Value) (string, error) { return strconv.FormatUint(v.Uint(), 10), nil },
		}
	}
	return nil
}
