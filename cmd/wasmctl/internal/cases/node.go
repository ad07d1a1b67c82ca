// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// Object is a Kubernetes object, or a part of one, as decoded JSON: a time is a string, and an
// integer is an int64.
type Object map[string]any

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *Object) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode && !strictyaml.IsNull(n) {
		return fmt.Errorf("line %d: want an object", n.Line)
	}
	var v map[string]any
	if err := n.Decode(&v); err != nil {
		return err
	}
	js, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return utiljson.Unmarshal(js, (*map[string]any)(o))
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

// maxNodes limits the nodes of a file, with aliases expanded.
const maxNodes = 200_000

// bounded checks that a node with its aliases expanded is finite, and not larger than maxNodes. It
// turns values that are strings in JSON into strings: keys, and times in YAML.
func bounded(n *yaml.Node) error {
	within, left := map[*yaml.Node]bool{}, maxNodes
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		n = strictyaml.Resolve(n)
		if left--; left < 0 {
			return fmt.Errorf("line %d: too large: it expands to more than %d values", n.Line, maxNodes)
		}
		if within[n] {
			return fmt.Errorf("line %d: anchor %q contains itself", n.Line, n.Anchor)
		}
		within[n] = true
		defer delete(within, n)
		if n.ShortTag() == "!!timestamp" {
			n.Tag = "!!str"
		}
		for i, e := range n.Content {
			if err := walk(e); err != nil {
				return err
			}
			if n.Kind == yaml.MappingNode && i%2 == 0 && e.Kind == yaml.ScalarNode && e.ShortTag() != "!!merge" {
				e.Tag = "!!str"
			}
		}
		return nil
	}
	return walk(n)
}

// checkKeys checks that a node has only keys that a struct of type t has.
func checkKeys(n *yaml.Node, t reflect.Type) error {
	n = strictyaml.Resolve(n)
	switch {
	case t.Kind() == reflect.Pointer:
		return checkKeys(n, t.Elem())
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		var errs []error
		for _, e := range n.Content {
			errs = append(errs, checkKeys(e, t.Elem()))
		}
		return errors.Join(errs...)
	case t.Kind() != reflect.Struct || n.Kind != yaml.MappingNode:
		return nil // Decode returns the error
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
			errs = append(errs, checkKeys(n.Content[i+1], t))
			continue
		}
		field, ok := known[key.Value]
		if !ok {
			errs = append(errs, fmt.Errorf("line %d: %s", key.Line, strictyaml.Unknown(key.Value, names)))
			continue
		}
		errs = append(errs, checkKeys(n.Content[i+1], field))
	}
	return errors.Join(errs...)
}
