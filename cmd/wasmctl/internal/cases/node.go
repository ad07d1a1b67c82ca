package cases

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// Object is a Kubernetes object, or a part of one, as JSON has it: a time is a
// string, and an integer an int64.
type Object map[string]any

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *Object) UnmarshalYAML(n *yaml.Node) error {
	v, err := toJSON(n)
	if err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return fmt.Errorf("line %d: an object is wanted", n.Line)
	}
	*o = m
	return nil
}

// toJSON turns a node into values of JSON. Anchors and merge keys are followed.
func toJSON(n *yaml.Node) (any, error) {
	switch n = strictyaml.Resolve(n); n.Kind { //nolint:exhaustive // what is neither is one value
	case yaml.MappingNode:
		return mapping(n)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, e := range n.Content {
			v, err := toJSON(e)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	switch n.ShortTag() {
	case "!!int":
		var i int64
		err := n.Decode(&i)
		return i, err
	case "!!float", "!!bool", "!!null":
		var v any
		err := n.Decode(&v)
		return v, err
	}
	return n.Value, nil // strings, and what YAML takes for a time
}

func mapping(n *yaml.Node) (any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v, err := toJSON(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		if n.Content[i].ShortTag() != "!!merge" {
			m[n.Content[i].Value] = v
			continue
		}
		base, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("line %d: << wants one map", n.Content[i].Line)
		}
		for key, value := range base {
			if child(n, key) == nil { // what stands here wins, wherever it stands
				m[key] = value
			}
		}
	}
	return m, nil
}

// child returns the value of a key of a mapping, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return strictyaml.Resolve(n.Content[i+1])
		}
	}
	return nil
}

// maxNodes bounds a file, aliases written out.
const maxNodes = 200_000

// bounded makes sure that a node, with its aliases written out, has an end, and
// is not larger than anybody means it to be.
func bounded(n *yaml.Node) error {
	within, left := map[*yaml.Node]bool{}, maxNodes
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		n = strictyaml.Resolve(n)
		if left--; left < 0 {
			return fmt.Errorf("line %d: too large: with its aliases written out it has more than %d values", n.Line, maxNodes)
		}
		if within[n] {
			return fmt.Errorf("line %d: anchor %q is within itself", n.Line, n.Anchor)
		}
		within[n] = true
		defer delete(within, n)
		for _, e := range n.Content {
			if err := walk(e); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(n)
}

// checkKeys makes sure that a node has no key that a struct like v does not have.
func checkKeys(n *yaml.Node, v any) error {
	return checkType(strictyaml.Resolve(n), reflect.TypeOf(v))
}

func checkType(n *yaml.Node, t reflect.Type) error {
	switch {
	case t.Kind() == reflect.Pointer:
		return checkType(n, t.Elem())
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		var errs []error
		for _, e := range n.Content {
			errs = append(errs, checkType(strictyaml.Resolve(e), t.Elem()))
		}
		return errors.Join(errs...)
	case t.Kind() != reflect.Struct || n.Kind != yaml.MappingNode:
		return nil // Decode says what is wrong
	}
	known := map[string]reflect.Type{}
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			known[name] = field.Type
			names = append(names, name)
		}
	}
	var errs []error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.ShortTag() == "!!merge" {
			errs = append(errs, checkType(strictyaml.Resolve(n.Content[i+1]), t))
			continue
		}
		field, ok := known[key.Value]
		if !ok {
			errs = append(errs, fmt.Errorf("line %d: %s", key.Line, strictyaml.Unknown(key.Value, names)))
			continue
		}
		errs = append(errs, checkType(strictyaml.Resolve(n.Content[i+1]), field))
	}
	return errors.Join(errs...)
}

// documents splits YAML at its separators.
func documents(text []byte) [][]byte {
	var docs [][]byte
	for doc := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---")) {
		if len(bytes.TrimSpace(doc)) > 0 {
			docs = append(docs, doc)
		}
	}
	return docs
}
