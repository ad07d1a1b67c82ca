package runfile

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// parser reads a file, and collects what is wrong with it.
type parser struct {
	strictyaml.Reader

	dir   string
	flags Flags
	env   Env
}

// scalar returns the text of a value, variables of the environment put in.
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

// pairs returns a mapping of text to text as key=value, sorted.
func (p *parser) pairs(n *yaml.Node, key string) (list []string, ok bool) {
	if n.Kind != yaml.MappingNode {
		p.Bad(n, "%s: want a mapping", key)
		return nil, false
	}
	if len(n.Content)/2 > MaxList {
		p.Bad(n, "%s: has %d entries, the limit is %d", key, len(n.Content)/2, MaxList)
		return nil, false
	}
	fields := p.Mapping(n, nil)
	ok = true
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, good := p.scalar(fields[name], key+"."+name)
		list, ok = append(list, name+"="+text), ok && good
	}
	return list, ok
}
