// SPDX-License-Identifier: Apache-2.0

// Package strictjson decodes JSON documents from registries, users and Secrets. It accepts only
// documents that all readers of JSON understand in the same way: a key must not appear twice in an
// object, and must not differ from a field's key by case only. Of such keys, encoding/json uses the
// last one, and other readers the first one or the one in the right case.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/internal/suggest"
)

// KeyError is the error of a key on which readers would disagree, or that is not known.
type KeyError struct {
	// Path leads to the key, for example layers[0].Digest.
	Path   string
	Reason string
}

// Error implements error.
func (e *KeyError) Error() string { return fmt.Sprintf("key %.200q: %s", e.Path, e.Reason) }

// Unmarshal decodes a document of a format that may have more keys than the type of into.
func Unmarshal(content []byte, into any) error { return unmarshal(content, into, false) }

// UnmarshalKnown decodes a document of a format of our own: an unknown key is an error.
func UnmarshalKnown(content []byte, into any) error { return unmarshal(content, into, true) }

func unmarshal(content []byte, into any, known bool) error {
	if json.Valid(content) { // otherwise json.Unmarshal returns the error
		c := checker{json.NewDecoder(bytes.NewReader(content)), known}
		c.UseNumber()
		if err := c.value(reflect.TypeOf(into)); err != nil {
			return err
		}
	}
	return json.Unmarshal(content, into)
}

// checker reads a valid document.
type checker struct {
	*json.Decoder

	known bool // whether unknown keys are errors
}

// value checks the next value, which is for a variable of type t. With a nil t, it checks only for
// keys that appear twice.
func (c *checker) value(t reflect.Type) error {
	token, err := c.Token()
	switch token {
	case json.Delim('{'):
		return c.object(shape(t))
	case json.Delim('['):
		t = shape(t)
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			t = t.Elem()
		} else {
			t = nil
		}
		for i := 0; c.More(); i++ {
			if err := c.value(t); err != nil {
				return within("["+strconv.Itoa(i)+"]", err)
			}
		}
		_, err = c.Token()
	}
	return err
}

// object checks the rest of an object.
func (c *checker) object(t reflect.Type) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for c.More() {
		token, err := c.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if seen[key] {
			return &KeyError{key, "appears twice"}
		}
		seen[key] = true
		of, isField := fields[key]
		if fields != nil && !isField {
			if reason := c.refuses(key, fields); reason != "" {
				return &KeyError{key, reason}
			}
		}
		if t != nil && t.Kind() == reflect.Map {
			of = t.Elem()
		}
		if err := c.value(of); err != nil {
			return within(key, err)
		}
	}
	_, err := c.Token()
	return err
}

// refuses returns the reason why a key that is no field is refused, or "".
func (c *checker) refuses(key string, fields map[string]reflect.Type) string {
	for name := range fields {
		if strings.EqualFold(key, name) {
			return fmt.Sprintf("differs from %q by case only", name)
		}
	}
	if !c.known {
		return ""
	}
	names := slices.Sorted(maps.Keys(fields))
	if meant := suggest.Word(key, names); meant != "" {
		return fmt.Sprintf("is unknown; did you mean %q?", meant)
	}
	return "is unknown; want one of " + strings.Join(names, ", ")
}

// within adds the place of a value to an error in it.
func within(place string, err error) error {
	e, ok := err.(*KeyError) //nolint:errorlint // of this package, and not wrapped
	if !ok {
		return err
	}
	if !strings.HasPrefix(e.Path, "[") {
		place += "."
	}
	if len(e.Path) < 1000 { // the nesting may be deep
		e.Path = place + e.Path
	}
	return e
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// shape returns the type that decides the keys of a value, or nil if the type does not.
func shape(t reflect.Type) reflect.Type {
	for t != nil && !reflect.PointerTo(t).Implements(unmarshaler) {
		if t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

// fieldsOf returns the types of the fields of a struct by their keys, or nil for another type.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-" || f.Anonymous && name == "":
		case name == "":
			all[f.Name] = f.Type
		default:
			all[name] = f.Type
		}
	}
	return all
}
