// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"strconv"
)

// keys converts the keys of a map type from and to text.
type keys struct {
	read  func(text string, v reflect.Value) error
	write func(v reflect.Value) (string, error)
}

// keysOf returns the conversion for a key type, by the precedence of
// encoding/json, or nil if there is none.
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
			return v.Addr().Interface().(textUnmarshaler).UnmarshalText([]byte(text)) //nolint:forcetypeassert // checked by own
		}
	}
	switch {
	case t.Kind() == reflect.String: // as in encoding/json, strings ignore their methods
	case writes:
		k.write = func(v reflect.Value) (string, error) {
			text, err := addressed(v).Interface().(textMarshaler).MarshalText() //nolint:forcetypeassert // checked by own
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
