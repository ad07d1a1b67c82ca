package grant

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
	"github.com/wasmctl/wasmctl/host/near"
)

// What a document of a grant says that it is.
const (
	APIVersion = "wasmctl.dev/v1"
	Kind       = "Grant"
)

// maxDocuments bounds how many documents a file may have.
const maxDocuments = 1000

// Document is one document of a grant's file.
type Document struct {
	// Controller is the name of the controller that it is for; "" is all of the
	// process.
	Controller string
	// Capabilities are rules as in a manifest.
	Capabilities []abi.Capability
}

// File is a grant's file.
type File []Document

// Rules returns the rules for a controller: those of the documents with its name,
// and of those without one. Named says whether any document is for it.
func (f File) Rules(controller string) (rules []abi.Capability, named bool) {
	for i := range f {
		if c := f[i].Controller; c == "" || c == controller {
			rules, named = append(rules, f[i].Capabilities...), true
		}
	}
	return rules, named
}

// Controllers returns the names that documents are for.
func (f File) Controllers() []string {
	var names []string
	for i := range f {
		if f[i].Controller != "" && !slices.Contains(names, f[i].Controller) {
			names = append(names, f[i].Controller)
		}
	}
	return names
}

// Parse reads a grant's file:
//
//	apiVersion: wasmctl.dev/v1
//	kind: Grant
//	controller: web          # optional; several documents may be for several controllers
//	capabilities:
//	- group: apps            # absent: the core group
//	  resource: deployments
//	  verbs: [get, list, watch, patch]
//	  namespaces: [shop]     # absent: all
//	  names: [web]           # absent: all
//	  fields: [spec.replicas]
//
// The error joins everything that is wrong, each as path:line:column, with the
// nearest word where one is not known.
func Parse(path string, content []byte) (File, error) {
	p := parser{path: path}
	d := yaml.NewDecoder(strings.NewReader(string(content)))
	var f File
	for len(f) < maxDocuments {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(append(p.errs, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: ")))...)
		}
		if root := doc.Content[0]; !isNull(root) {
			f = append(f, p.document(root))
		}
	}
	if len(f) == 0 && len(p.errs) == 0 {
		return nil, fmt.Errorf("%s: the file is empty: want apiVersion: %s, kind: %s and capabilities", path, APIVersion, Kind)
	}
	return f, errors.Join(p.errs...)
}

// parser collects what is wrong with a file.
type parser struct {
	path string
	errs []error
}

func (p *parser) bad(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %w", p.path, n.Line, n.Column, fmt.Errorf(format, args...)))
}

func (p *parser) document(root *yaml.Node) Document {
	var d Document
	fields := p.mapping(root, []string{"apiVersion", "kind", "controller", "capabilities"})
	p.constant(root, fields["apiVersion"], "apiVersion", APIVersion)
	p.constant(root, fields["kind"], "kind", Kind)
	d.Controller = p.text(fields["controller"], "controller")
	list := fields["capabilities"]
	if list == nil {
		if root.Kind == yaml.MappingNode {
			p.bad(root, "capabilities: is missing: list what is granted; [] grants nothing")
		}
		return d
	}
	for _, n := range p.sequence(list, "capabilities") {
		d.Capabilities = append(d.Capabilities, p.capability(n))
	}
	return d
}

func (p *parser) capability(n *yaml.Node) abi.Capability {
	fields := p.mapping(n, []string{"group", "resource", "subresources", "verbs", "namespaces", "names", "fields"})
	c := abi.Capability{
		Group: p.text(fields["group"], "group"), Resource: p.text(fields["resource"], "resource"),
		Subresources: p.texts(fields["subresources"], "subresources"), Verbs: p.texts(fields["verbs"], "verbs"),
		Namespaces: p.texts(fields["namespaces"], "namespaces"), Names: p.texts(fields["names"], "names"), Fields: p.texts(fields["fields"], "fields"),
	}
	if n.Kind != yaml.MappingNode {
		return c
	}
	if fields["resource"] == nil {
		p.bad(n, "resource: is missing: want the plural, for example deployments")
	} else if c.Resource == "*" || c.Group == "*" {
		p.bad(n, "resource and group: * is not read: a rule names what it is about")
	}
	if fields["verbs"] == nil {
		p.bad(n, "verbs: is missing: want some of %s, or \"*\"", strings.Join(verbs, ", "))
	}
	for _, v := range items(fields["verbs"]) {
		if v.Value != "*" && !slices.Contains(verbs, v.Value) {
			p.bad(v, "verbs: %s", unknown(v.Value, verbs))
		}
	}
	for _, v := range items(fields["fields"]) {
		if _, err := fieldpath.Parse(v.Value); err != nil && v.Kind == yaml.ScalarNode {
			p.bad(v, "%w", err)
		}
	}
	return c
}

var verbs = kubeapi.SpellOut([]string{"*"})

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// mapping returns the values of a mapping by their keys, which must be known
// and not be there twice.
func (p *parser) mapping(n *yaml.Node, known []string) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		p.bad(n, "want a mapping of %s", strings.Join(known, ", "))
		return fields
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			p.bad(key, "%s", unknown(key.Value, known))
		case fields[key.Value] != nil:
			p.bad(key, "%s: is there twice", key.Value)
		default:
			fields[key.Value] = value
		}
	}
	return fields
}

func unknown(word string, known []string) string {
	if meant := near.Word(word, known); meant != "" {
		return fmt.Sprintf("%s: is not known; did you mean %s?", word, meant)
	}
	return fmt.Sprintf("%s: is not known; there are %s", word, strings.Join(known, ", "))
}

func (p *parser) constant(parent, n *yaml.Node, key, want string) {
	switch {
	case n == nil && parent.Kind == yaml.MappingNode:
		p.bad(parent, "%s: is missing: want %s: %s", key, key, want)
	case n != nil && n.Value != want:
		p.bad(n, "%s: %q: want %s", key, n.Value, want)
	}
}

func (p *parser) sequence(n *yaml.Node, key string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		p.bad(n, "%s: want a list", key)
	}
	return items(n)
}

// text returns a scalar; "" where there is none.
func (p *parser) text(n *yaml.Node, key string) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || isNull(n):
		p.bad(n, "%s: want one word", key)
		return ""
	}
	return n.Value
}

// texts returns a list of scalars, which must not be empty: an empty list would
// read as all of them.
func (p *parser) texts(n *yaml.Node, key string) []string {
	if n == nil {
		return nil
	}
	var list []string
	for _, item := range p.sequence(n, key) {
		text := p.text(item, key)
		if text == "" && item.Kind == yaml.ScalarNode && !isNull(item) {
			p.bad(item, "%s: is empty", key)
		}
		list = append(list, text)
	}
	if n.Kind == yaml.SequenceNode && len(list) == 0 {
		p.bad(n, "%s: is empty: leave it out, or name some", key)
	}
	return list
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Marshal writes a document that Parse reads as it is.
func (d *Document) Marshal() ([]byte, error) {
	return yaml.Marshal(struct {
		APIVersion   string       `yaml:"apiVersion"`
		Kind         string       `yaml:"kind"`
		Controller   string       `yaml:"controller,omitempty"`
		Capabilities []capability `yaml:"capabilities"`
	}{APIVersion, Kind, d.Controller, capabilities(d.Capabilities)})
}

// capability is an abi.Capability with the keys of YAML, in flow style.
type capability struct {
	Group        string   `yaml:"group,omitempty"`
	Resource     string   `yaml:"resource"`
	Subresources []string `yaml:"subresources,flow,omitempty"`
	Verbs        []string `yaml:"verbs,flow"`
	Namespaces   []string `yaml:"namespaces,flow,omitempty"`
	Names        []string `yaml:"names,flow,omitempty"`
	Fields       []string `yaml:"fields,omitempty"`
}

func capabilities(list []abi.Capability) []capability {
	out := make([]capability, len(list))
	for i := range list {
		c := &list[i]
		out[i] = capability{c.Group, c.Resource, c.Subresources, c.Verbs, c.Namespaces, c.Names, c.Fields}
	}
	return out
}
