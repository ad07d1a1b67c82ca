// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Format returns a file with the same meaning, but without comments, anchors, defaults and variables,
// which Parse has replaced.
func (f *File) Format(process *pflag.FlagSet) ([]byte, error) {
	root := mappingOf("apiVersion", text(APIVersion), "kind", text(Kind))
	if len(f.Process) > 0 {
		add(root, "process", f.Process.node(process))
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range f.Controllers {
		content, err := json.Marshal(f.Controllers[i].Spec)
		var value any
		if err == nil {
			err = json.Unmarshal(content, &value)
		}
		if err != nil {
			return nil, err
		}
		list.Content = append(list.Content, jsonNode(value))
	}
	add(root, "controllers", list)
	return yaml.Marshal(root)
}

// jsonNode converts a decoded JSON value to YAML.
func jsonNode(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		n := mappingOf()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			add(n, key, jsonNode(v[key]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, jsonNode(item))
		}
		return n
	case string:
		return text(v)
	}
	n := &yaml.Node{}
	_ = n.Encode(value) // numbers and booleans do not fail
	return n
}

// node returns the mapping of keys to values.
func (v Values) node(flags *pflag.FlagSet) *yaml.Node {
	n := mappingOf()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		add(n, KeyOf(name), valueNode(flags.Lookup(name), v[name]))
	}
	return n
}

func valueNode(flag *pflag.Flag, list []string) *yaml.Node {
	switch typeOf(flag) {
	case typeList:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range list {
			n.Content = append(n.Content, text(item))
		}
		return n
	case typeBool, typeInt:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: list[0]}
	}
	return text(list[0])
}

// text returns a node for a text. It escapes dollar signs, so that Parse returns the same text.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(strings.ReplaceAll(s, "$", "$$"))
	return n
}

func mappingOf(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		add(n, pairs[i].(string), pairs[i+1].(*yaml.Node)) //nolint:forcetypeassert // ours
	}
	return n
}

// add adds a key. It quotes the key if YAML would otherwise not read it as text.
func add(n *yaml.Node, key string, value *yaml.Node) {
	k := &yaml.Node{}
	k.SetString(key)
	n.Content = append(n.Content, k, value)
}
