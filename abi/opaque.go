// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// opaqueType is the extension type of opaque JSON.
const opaqueType = 1

// AppendOpaque appends opaque JSON: the text of one JSON value, which a Kubernetes API server stores without interpreting it.
func AppendOpaque(dst, js []byte) []byte {
	switch n := len(js); {
	case n <= math.MaxUint8:
		dst = append(dst, 0xc7, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xc8), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xc9), uint32(n)) //nolint:gosec // messages are shorter than 4 GiB
	}
	return append(append(dst, opaqueType), js...)
}

// opaque reads opaque JSON as a slice of the message.
func (r *reader) opaque() ([]byte, error) {
	width := 1 << (r.b[r.pos] - 0xc7)
	r.pos++
	n, err := r.uint(width)
	if err != nil {
		return nil, err
	}
	kind, err := r.uint(1)
	if err != nil {
		return nil, err
	}
	if kind != opaqueType {
		return nil, fmt.Errorf("%w: extension type %d", ErrType, int8(kind)) //nolint:gosec // the sign bit is intended
	}
	if n > uint64(len(r.b)-r.pos) {
		return nil, ErrTruncated
	}
	js, err := r.take(int(n)) //nolint:gosec // checked
	if err == nil && !json.Valid(js) {
		return nil, fmt.Errorf("%w: opaque JSON is not valid", ErrType)
	}
	return js, err
}

// Plain returns the value b without opaque JSON: its text is decoded, as DecodeValue does. The result is b itself if it has none, which is
// nearly always so and takes far less time than a copy, or if it is not valid.
func Plain(b []byte) ([]byte, error) {
	if !mayHaveOpaque(b) {
		return b, nil
	}
	r := reader{b: b}
	if t, err := r.texts(); t == nil || err != nil {
		return b, nil //nolint:nilerr // documented
	}
	v, err := DecodeValue(b)
	if err != nil {
		return nil, err
	}
	return AppendValue(make([]byte, 0, len(b)), v)
}

// mayHaveOpaque reports whether bytes occur that may be the head of opaque JSON. It looks for the type in one pass, because each object that
// is sent to a guest is searched.
func mayHaveOpaque(b []byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], opaqueType)
		if i < 0 {
			return false
		}
		at += i
		if at >= 2 && b[at-2] == 0xc7 || at >= 3 && b[at-3] == 0xc8 || at >= 5 && b[at-5] == 0xc9 {
			return true
		}
	}
}

// jsonReader decodes valid JSON into the types of DecodeValue. The last of several values of a key counts, unless keys have to be unique.
type jsonReader struct {
	*json.Decoder

	unique bool
}

// decode decodes js, which is within a value of the given depth.
func (r *jsonReader) decode(js []byte, depth int) (any, error) {
	r.Decoder = json.NewDecoder(bytes.NewReader(js))
	r.UseNumber()
	v, err := r.value(depth)
	if err != nil {
		return nil, fmt.Errorf("%w: opaque JSON: %w", ErrType, err)
	}
	return v, nil
}

func (r *jsonReader) value(depth int) (any, error) {
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth >= MaxDepth {
			return nil, ErrTooDeep
		}
		if t == '{' {
			return r.mapping(depth)
		}
		return r.array(depth)
	case json.Number:
		if i, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return i, nil
		}
		return t.Float64()
	default:
		return t, nil
	}
}

func (r *jsonReader) mapping(depth int) (any, error) {
	m := map[string]any{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if _, twice := m[key]; twice && r.unique {
			return nil, fmt.Errorf("key %q appears twice", key)
		}
		if m[key], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := r.Token()
	return m, err
}

func (r *jsonReader) array(depth int) (any, error) {
	list := []any{}
	for r.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.Token()
	return list, err
}
