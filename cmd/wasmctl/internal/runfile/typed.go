// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// parser reads a file and collects its errors.
type parser struct {
	strictyaml.Reader

	dir    string
	format Format
	env    Env

	at map[string]*yaml.Node // the nodes of the present controller's fields by path
}

// scalar returns the text of a value, in which environment variables are replaced by their values.
func (p *parser) scalar(n *yaml.Node, key string) (string, bool) {
	text, ok := p.Scalar(n, key)
	if !ok {
		return "", false
	}
	text, err := expand(text, p.env)
	if err != nil {
		p.Bad(n, "%s: %w", key, err)
		return "", false
	}
	return text, true
}

// rebase converts a path that is relative to the file into one that is relative to the working directory
// of the process.
func (p *parser) rebase(path string) string {
	if path == "" || filepath.IsAbs(path) || oci.IsRef(path) {
		return path
	}
	return filepath.Join(p.dir, path)
}

// fill sets the fields of a spec to the value of a node.
func (p *parser) fill(n *yaml.Node, value, into any) {
	content, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		p.Bad(n, "%w", err)
	}
}

// typed returns the value of a node, for a field of this type, in the form of JSON. After an error, which
// it records, the value is not used.
func (p *parser) typed(n *yaml.Node, t reflect.Type, path string) any {
	if path != "" {
		p.at[path] = n
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, own := reflect.TypeAssert[json.Unmarshaler](reflect.New(t))
	switch {
	case own && n.Kind == yaml.ScalarNode && t.Kind() != reflect.Map:
		return p.own(n, t, path)
	case t.Kind() == reflect.Struct:
		return p.structure(n, t, path)
	case t.Kind() == reflect.Map:
		return p.mapping(n, path)
	case t.Kind() == reflect.Slice:
		return p.list(n, t, path)
	}
	text, ok := p.scalar(n, path)
	if !ok {
		return nil
	}
	switch {
	case t.Kind() == reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			p.Bad(n, "%s: %q: want true or false", path, text)
		}
		return v
	case t.Kind() == reflect.Int32:
		v, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			p.Bad(n, "%s: %q: want a whole number", path, text)
		}
		return v
	case p.isPath(path):
		return p.rebase(text)
	}
	return text
}

// own reads a text for a type that implements json.Unmarshaler.
func (p *parser) own(n *yaml.Node, t reflect.Type, path string) any {
	text, ok := p.scalar(n, path)
	if !ok {
		return nil
	}
	if p.isPath(path) || p.isPath(path+".file") {
		text = p.rebase(text)
	}
	var value any = text
	if number, err := strconv.ParseFloat(text, 64); err == nil && t.Kind() == reflect.Float64 {
		value = number
	}
	content, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(content, reflect.New(t).Interface())
	}
	if err != nil {
		p.Bad(n, "%s: %w", path, err)
	}
	return value
}

func (p *parser) structure(n *yaml.Node, t reflect.Type, path string) any {
	types := p.format.fieldsBelow(t, path)
	known := slices.Sorted(maps.Keys(types))
	if n.Kind != yaml.MappingNode && path != "" {
		p.Bad(n, "%s: want a mapping of %s", path, strings.Join(known, ", "))
		return nil
	}
	out := map[string]any{}
	for key, value := range p.Mapping(p.former(n, types, path), known) {
		out[key] = p.typed(value, types[key], below(path, key))
	}
	return out
}

// former refuses keys of the older format with a suggestion, and returns the mapping without them.
func (p *parser) former(n *yaml.Node, types map[string]reflect.Type, path string) *yaml.Node {
	if path != "" || n.Kind != yaml.MappingNode {
		return n
	}
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], strictyaml.Resolve(n.Content[i+1])
		if now := p.format.now(key.Value); now != "" && (types[key.Value] == nil || value.Kind == yaml.ScalarNode && hasKeys(types[key.Value])) {
			p.Bad(key, "%s: unknown key; did you mean %s?", key.Value, now)
			continue
		}
		rest.Content = append(rest.Content, key, n.Content[i+1])
	}
	return &rest
}

// hasKeys reports whether a value of this type must be a mapping.
func hasKeys(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, own := reflect.TypeAssert[json.Unmarshaler](reflect.New(t))
	return t.Kind() == reflect.Struct && !own
}

// mapping reads a mapping of names to single values.
func (p *parser) mapping(n *yaml.Node, path string) any {
	if n.Kind != yaml.MappingNode {
		p.Bad(n, "%s: want a mapping", path)
		return nil
	}
	if len(n.Content)/2 > MaxList {
		p.Bad(n, "%s: has %d entries, the limit is %d", path, len(n.Content)/2, MaxList)
		return nil
	}
	out := map[string]any{}
	for key, value := range p.Mapping(n, nil) {
		p.at[below(path, key)] = value
		out[key], _ = p.scalar(value, below(path, key))
	}
	return out
}

// list reads a list. A single value is a list of one item.
func (p *parser) list(n *yaml.Node, t reflect.Type, path string) any {
	items, out := []*yaml.Node{n}, []any{}
	if n.Kind != yaml.ScalarNode {
		items = p.Sequence(n, path, MaxList)
	}
	for i, item := range items {
		out = append(out, p.typed(item, t.Elem(), path+"["+strconv.Itoa(i)+"]"))
	}
	return out
}

func (p *parser) isPath(path string) bool {
	return slices.ContainsFunc(p.format.Fields, func(f Field) bool { return f.IsPath && f.Path == path })
}

// below returns the path of a key.
func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
