// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"encoding/json"
	"maps"
	"slices"
)

// Texts has the opaque JSON within a value.
type Texts struct {
	// Text is the JSON if the value itself is opaque.
	Text []byte
	// Keys and Elements are the entries of a map, and of an array, that contain opaque JSON.
	Keys     map[string]*Texts
	Elements map[int]*Texts
}

// OpaqueTexts returns the opaque JSON within a value that DecodeValue has accepted, or nil if there is none. The texts are slices of b.
func OpaqueTexts(b []byte) (*Texts, error) {
	if !mayHaveOpaque(b) {
		return nil, nil //nolint:nilnil // documented
	}
	r := reader{b: b}
	return r.texts()
}

func (r *reader) texts() (*Texts, error) {
	k, err := r.peek()
	if err != nil {
		return nil, err
	}
	switch k {
	case kindOpaque:
		js, err := r.opaque()
		return &Texts{Text: js}, err
	case kindMap, kindArray:
		return r.nestedTexts(k)
	default:
		return nil, r.skip(0)
	}
}

func (r *reader) nestedTexts(k kind) (*Texts, error) {
	t := &Texts{Keys: map[string]*Texts{}, Elements: map[int]*Texts{}}
	n, err := r.nestedLen(k)
	for i := 0; i < n && err == nil; i++ {
		var key []byte
		if k == kindMap {
			if key, err = r.str(); err != nil {
				return nil, err
			}
		}
		var inner *Texts
		if inner, err = r.texts(); inner == nil {
			continue
		}
		if k == kindMap {
			t.Keys[string(key)] = inner
		} else {
			t.Elements[i] = inner
		}
	}
	if err != nil || len(t.Keys)+len(t.Elements) == 0 {
		return nil, err
	}
	return t, nil
}

// Check returns an error if a key appears twice in a map, because readers of the text may disagree on its value.
func (t *Texts) Check() error {
	if t == nil {
		return nil
	}
	if t.Text != nil {
		_, err := (&jsonReader{unique: true}).decode(t.Text, 0)
		return err
	}
	for _, inner := range t.Keys {
		if err := inner.Check(); err != nil {
			return err
		}
	}
	for _, inner := range t.Elements {
		if err := inner.Check(); err != nil {
			return err
		}
	}
	return nil
}

// AppendJSON appends the JSON of v, the decoded value to which the texts belong. It contains the texts unchanged.
func (t *Texts) AppendJSON(dst []byte, v any) ([]byte, error) {
	if t != nil && t.Text != nil {
		return append(dst, t.Text...), nil
	}
	switch v := v.(type) {
	case map[string]any:
		if t != nil && len(t.Keys) > 0 {
			return t.appendMap(dst, v)
		}
	case []any:
		if t != nil && len(t.Elements) > 0 {
			return t.appendArray(dst, v)
		}
	}
	js, err := json.Marshal(v)
	return append(dst, js...), err
}

func (t *Texts) appendMap(dst []byte, m map[string]any) ([]byte, error) {
	separator := byte('{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		dst = append(append(append(dst, separator), name...), ':')
		if dst, err = t.Keys[key].AppendJSON(dst, m[key]); err != nil {
			return nil, err
		}
		separator = ','
	}
	if len(m) == 0 {
		dst = append(dst, separator)
	}
	return append(dst, '}'), nil
}

func (t *Texts) appendArray(dst []byte, list []any) ([]byte, error) {
	separator := byte('[')
	for i, e := range list {
		var err error
		if dst, err = t.Elements[i].AppendJSON(append(dst, separator), e); err != nil {
			return nil, err
		}
		separator = ','
	}
	if len(list) == 0 {
		dst = append(dst, separator)
	}
	return append(dst, ']'), nil
}
