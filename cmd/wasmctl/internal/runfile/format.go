package runfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Format writes a file that says the same: without comments, anchors, defaults
// and variables, which Parse has put in.
func (f *File) Format(flags Flags) ([]byte, error) {
	root := mappingOf("apiVersion", text(APIVersion), "kind", text(Kind))
	if len(f.Process) > 0 {
		add(root, "process", f.Process.node(flags.Process))
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, c := range f.Controllers {
		rest := maps.Clone(c.Values)
		delete(rest, "name")
		n := mappingOf("name", text(c.Name), moduleKey, text(c.Module))
		n.Content = append(n.Content, rest.node(flags.Controller).Content...)
		list.Content = append(list.Content, n)
	}
	add(root, "controllers", list)
	return yaml.Marshal(root)
}

// node is the mapping of keys to values.
func (v Values) node(flags *pflag.FlagSet) *yaml.Node {
	n := mappingOf()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		add(n, KeyOf(name), valueNode(flags.Lookup(name), v[name]))
	}
	return n
}

func valueNode(flag *pflag.Flag, list []string) *yaml.Node {
	switch typeOf(flag) {
	case typeMap:
		n := mappingOf()
		for _, pair := range list {
			key, value, _ := strings.Cut(pair, "=")
			add(n, key, text(value))
		}
		return n
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

// text is a value that is read as it is: a dollar stays one.
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

// add adds a key; one that is not text by itself is quoted.
func add(n *yaml.Node, key string, value *yaml.Node) {
	k := &yaml.Node{}
	k.SetString(key)
	n.Content = append(n.Content, k, value)
}
