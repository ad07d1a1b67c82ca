// SPDX-License-Identifier: Apache-2.0

package abi

import "fmt"

// Check returns an error unless b is exactly one msgpack value that is allowed in messages: within MaxBytes and MaxDepth, maps with string
// keys, no binary or extension type except for opaque JSON, integers within an int64, finite floats, strings in UTF-8, no bytes after it.
func Check(b []byte) error {
	if len(b) > MaxBytes {
		return ErrTooLarge
	}
	r := reader{b: b}
	if err := r.skip(0); err != nil {
		return err
	}
	return r.end()
}

// DecodeValue decodes one value into the Go types of Kubernetes' dynamic client and DeepCopyJSON: nil, bool, int64, float64, string, []any
// and map[string]any. Opaque JSON is decoded too. It rejects the same values as Check, and maps with a duplicate key.
func DecodeValue(b []byte) (any, error) {
	if len(b) > MaxBytes {
		return nil, ErrTooLarge
	}
	r := reader{b: b}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	return v, r.end()
}

// DecodeObject is like DecodeValue, for a value that must be a map.
func DecodeObject(b []byte) (map[string]any, error) {
	v, err := DecodeValue(b)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: want a map", ErrType)
	}
	return m, nil
}

func (r *reader) value(depth int) (any, error) {
	k, err := r.peek()
	if err != nil {
		return nil, err
	}
	switch k {
	case kindBool:
		return r.bool()
	case kindInt:
		return r.int()
	case kindFloat:
		return r.float()
	case kindString:
		s, err := r.str()
		return string(s), err
	case kindArray:
		return r.array(depth)
	case kindMap:
		return r.mapping(depth)
	case kindOpaque:
		js, err := r.opaque()
		if err != nil {
			return nil, err
		}
		return (&jsonReader{}).decode(js, depth)
	default: // nil
		r.pos++
		return nil, nil
	}
}

func (r *reader) array(depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, ErrTooDeep
	}
	n, err := r.arrayLen()
	if err != nil {
		return nil, err
	}
	a := make([]any, n)
	for i := range a {
		if a[i], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (r *reader) mapping(depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, ErrTooDeep
	}
	n, err := r.mapLen()
	if err != nil {
		return nil, err
	}
	m := make(map[string]any, n)
	for range n {
		key, err := r.str()
		if err != nil {
			return nil, err
		}
		if _, twice := m[string(key)]; twice {
			return nil, fmt.Errorf("%w: key %q appears twice in one map", ErrType, key)
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		m[string(key)] = v
	}
	return m, nil
}
