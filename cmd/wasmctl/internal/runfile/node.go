package runfile

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/near"
)

// parser collects what is wrong with a file while it is read.
type parser struct {
	path, dir string
	flags     Flags
	env       Env
	errs      []error
}

// bad adds something that is wrong at a node.
func (p *parser) bad(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %w", p.path, n.Line, n.Column, fmt.Errorf(format, args...)))
}

// document returns the mapping that the only document of a file is.
func (p *parser) document(content []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(strings.NewReader(string(content)))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: the file is empty: want apiVersion: %s, kind: %s and controllers", p.path, APIVersion, Kind)
		}
		return nil, fmt.Errorf("%s: %s", p.path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&more); err == nil {
		return nil, fmt.Errorf("%s:%d: a second document: one file is one process", p.path, more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", p.path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	root := resolve(doc.Content[0])
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a mapping with apiVersion, kind and controllers", p.path, root.Line)
	}
	return root, nil
}

// resolve follows an alias to what it names: an anchor never is an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// mapping returns the values of a mapping by their keys, which must be known
// and not be there twice.
func (p *parser) mapping(n *yaml.Node, known []string) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	if n == nil || isNull(n) {
		return fields
	}
	if n.Kind != yaml.MappingNode {
		p.bad(n, "want a mapping of %s", oneOf(known))
		return fields
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		switch {
		case key.Value == "<<":
			p.bad(key, "<<: merge keys are not read here: say what the controllers share under defaults")
		case known != nil && !slices.Contains(known, key.Value):
			p.bad(key, "%s", unknown(key.Value, known))
		case fields[key.Value] != nil:
			p.bad(key, "%s: is there twice", key.Value)
		default:
			fields[key.Value] = value
		}
	}
	return fields
}

// unknown says that a key is not known, and which was probably meant.
func unknown(key string, known []string) string {
	if meant := near.Word(key, known); meant != "" {
		return fmt.Sprintf("%s: there is no such key; did you mean %s?", key, meant)
	}
	return fmt.Sprintf("%s: there is no such key; there are %s", key, strings.Join(slices.Sorted(slices.Values(known)), ", "))
}

func oneOf(known []string) string {
	if known == nil {
		return "names to values"
	}
	return strings.Join(known, ", ")
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// sequence returns the items of a list.
func (p *parser) sequence(n *yaml.Node, key string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		p.bad(n, "%s: want a list", key)
		return nil
	}
	items := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		items[i] = resolve(item)
	}
	return items
}

// scalar returns the text of a value, variables of the environment put in.
func (p *parser) scalar(n *yaml.Node, key string) (string, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		p.bad(n, "%s: want one value", key)
		return "", false
	}
	text, err := expand(n.Value, p.env)
	if err != nil {
		p.bad(n, "%s: %w", key, err)
		return "", false
	}
	return text, true
}

// pairs returns a mapping of text to text as key=value, sorted.
func (p *parser) pairs(n *yaml.Node, key string) (list []string, ok bool) {
	if n.Kind != yaml.MappingNode {
		p.bad(n, "%s: want a mapping", key)
		return nil, false
	}
	fields := p.mapping(n, nil)
	ok = true
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, good := p.scalar(fields[name], key+"."+name)
		list, ok = append(list, name+"="+text), ok && good
	}
	return list, ok
}
