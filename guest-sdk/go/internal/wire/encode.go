package wire

import (
	"encoding/base64"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Appender is a type that writes itself: one whole msgpack value.
type Appender interface {
	AppendMsgpack(dst []byte) ([]byte, error)
}

// Append appends any value that has a form in msgpack: nil, booleans, numbers,
// strings, time.Time (RFC 3339 in UTC, to the second), slices, maps with string
// keys, structs by their msgpack or json tags, pointers to these, and any
// Appender. A []byte is written in base64, as JSON has it. The
// keys of a map are sorted, so equal values give equal bytes. A value that
// Check would refuse is an error; dst is then lost.
func Append(dst []byte, v any) ([]byte, error) { return appendAny(dst, v, 0) }

func appendAny(dst []byte, v any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	switch v := v.(type) {
	case nil:
		return AppendNil(dst), nil
	case string:
		return AppendText(dst, v)
	case bool:
		return AppendBool(dst, v), nil
	case int:
		return AppendInt(dst, int64(v)), nil
	case int32:
		return AppendInt(dst, int64(v)), nil
	case int64:
		return AppendInt(dst, v), nil
	case float64:
		return appendFinite(dst, v)
	case time.Time:
		return AppendString(dst, v.UTC().Format(time.RFC3339)), nil
	case map[string]any:
		return appendMapAny(dst, v, depth)
	case map[string]string:
		return appendMapString(dst, v)
	case []any:
		return appendSlice(dst, v, depth)
	case []string:
		return appendStrings(dst, v)
	case Appender:
		if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
			return AppendNil(dst), nil
		}
		return v.AppendMsgpack(dst)
	}
	return appendReflect(dst, reflect.ValueOf(v), depth)
}

// AppendText is AppendString for a string that may not be UTF-8: that is
// ErrUTF8.
func AppendText(dst []byte, s string) ([]byte, error) {
	if !validUTF8(s) {
		return nil, ErrUTF8
	}
	return AppendString(dst, s), nil
}

func appendFinite(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, ErrNumber
	}
	return AppendFloat(dst, f), nil
}

func appendMapAny(dst []byte, m map[string]any, depth int) ([]byte, error) {
	dst = AppendMap(dst, len(m))
	var few [smallMap]entry[any]
	for _, e := range sortedEntries(few[:0], m) {
		var err error
		if dst, err = AppendText(dst, e.key); err == nil {
			dst, err = appendAny(dst, e.value, depth+1)
		}
		if err != nil {
			return nil, within(e.key, err)
		}
	}
	return dst, nil
}

func appendMapString(dst []byte, m map[string]string) ([]byte, error) {
	dst = AppendMap(dst, len(m))
	var few [smallMap]entry[string]
	for _, e := range sortedEntries(few[:0], m) {
		var err error
		if dst, err = AppendText(dst, e.key); err == nil {
			dst, err = AppendText(dst, e.value)
		}
		if err != nil {
			return nil, within(e.key, err)
		}
	}
	return dst, nil
}

// smallMap is how many keys a map may have for its entries to be sorted on the
// stack.
const smallMap = 8

type entry[V any] struct {
	key   string
	value V
}

// sortedEntries appends the entries of m to dst, which is empty, by their keys.
// They come with their values: a second look-up of each costs more than that.
func sortedEntries[V any](dst []entry[V], m map[string]V) []entry[V] {
	for k, v := range m {
		dst = append(dst, entry[V]{k, v})
	}
	if len(dst) > smallMap {
		slices.SortFunc(dst, func(a, b entry[V]) int { return strings.Compare(a.key, b.key) })
		return dst
	}
	for i := 1; i < len(dst); i++ {
		for j := i; j > 0 && less(dst[j].key, dst[j-1].key); j-- {
			dst[j], dst[j-1] = dst[j-1], dst[j]
		}
	}
	return dst
}

// less is a < b, which is a call, where the first bytes do not decide.
func less(a, b string) bool {
	if a == "" || b == "" || a[0] == b[0] {
		return a < b
	}
	return a[0] < b[0]
}

func appendSlice(dst []byte, a []any, depth int) ([]byte, error) {
	dst = AppendArray(dst, len(a))
	for i, e := range a {
		var err error
		if dst, err = appendAny(dst, e, depth+1); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}

func appendStrings(dst []byte, a []string) ([]byte, error) {
	dst = AppendArray(dst, len(a))
	for i, s := range a {
		var err error
		if dst, err = AppendText(dst, s); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}

// appendReflect is appendAny for the types that it does not name.
func appendReflect(dst []byte, v reflect.Value, depth int) ([]byte, error) {
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
	case reflect.Float32, reflect.Float64:
		return appendFinite(dst, v.Float())
	case reflect.String:
		return AppendText(dst, v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return AppendNil(dst), nil
		}
		return appendAny(dst, v.Elem().Interface(), depth+1)
	case reflect.Slice, reflect.Array:
		return appendList(dst, v, depth)
	case reflect.Map:
		return appendMapReflect(dst, v, depth)
	case reflect.Struct:
		return appendStruct(dst, v, depth)
	default:
		return nil, errors.New("Go type " + v.Type().String() + " has no form in msgpack")
	}
}

func appendList(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return AppendNil(dst), nil
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return AppendString(dst, base64.StdEncoding.EncodeToString(v.Bytes())), nil
		}
	}
	dst = AppendArray(dst, v.Len())
	for i := 0; i < v.Len(); i++ {
		var err error
		if dst, err = appendAny(dst, v.Index(i).Interface(), depth+1); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return dst, nil
}

func appendMapReflect(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.IsNil() {
		return AppendNil(dst), nil
	}
	if v.Type().Key().Kind() != reflect.String {
		return nil, errors.New("Go type " + v.Type().String() + " has keys that are not strings")
	}
	m := make(map[string]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		m[it.Key().String()] = it.Value().Interface()
	}
	return appendMapAny(dst, m, depth)
}

func appendStruct(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	b := NewBuilder(dst)
	for _, f := range fieldsOf(v.Type()) {
		fv, ok := f.in(v, false)
		if !ok || f.omitEmpty && isEmpty(fv) {
			continue
		}
		b.key(f.name)
		var err error
		if b.b, err = appendAny(b.b, fv.Interface(), depth+1); err != nil {
			return nil, within(f.name, err)
		}
	}
	return b.End(), nil
}

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

// PathError says where in a value an error is.
type PathError struct {
	// Path is the way from the root, with dots between.
	Path string
	Err  error
}

// Error implements error.
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong there.
func (e *PathError) Unwrap() error { return e.Err }

// within puts a step before the path of err.
func within(step string, err error) error {
	if p, ok := err.(*PathError); ok { //nolint:errorlint // only the outermost has the path
		return &PathError{Path: step + "." + p.Path, Err: p.Err}
	}
	return &PathError{Path: step, Err: err}
}
