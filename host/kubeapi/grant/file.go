// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// Header of a grant document.
const (
	APIVersion = "wasmctl.dev/v1"
	Kind       = "Grant"
)

// Limits of a grant file. The lists of a rule have the limits of a manifest.
const (
	MaxDocuments = 1000
	// MaxRules is the maximum number of capabilities in all documents together, and MaxRights is
	// the maximum number of single rights in them: see abi.Capability.Count.
	MaxRules  = 1000
	MaxRights = 20_000
	// MaxFields is the maximum number of patterns of fields in all documents.
	MaxFields = 2000
	// MaxFinalizers is the maximum number of finalizers in a document.
	MaxFinalizers = 20
)

// Document is one document of a grant file.
type Document struct {
	// Controllers are the names of the controllers to which the document applies. If empty, it applies
	// to all controllers of the process.
	Controllers []string
	// Digests are the modules to which the document applies. If empty, it applies to all.
	Digests []string
	// Signers are fingerprints of keys, one of which must have signed the module. If empty,
	// unsigned modules are accepted.
	Signers []string
	// Manifest grants everything that the manifest of such a module requests. The document then has
	// no capabilities and finalizers.
	Manifest bool
	// Capabilities are rules, as in a manifest.
	Capabilities []abi.Capability
	// Finalizers are permitted names in addition to those under the API group of the reconciled
	// kind.
	Finalizers []string
}

// File is a grant file.
type File []Document

// Of returns the documents for a controller: those with its name, and those without a name.
func (f File) Of(controller string) (of File) {
	for i := range f {
		if names := f[i].Controllers; len(names) == 0 || slices.Contains(names, controller) {
			of = append(of, f[i])
		}
	}
	return of
}

// Rules returns the rules for a controller. named reports whether any document applies to it.
func (f File) Rules(controller string) (rules []abi.Capability, named bool) {
	of := f.Of(controller)
	for i := range of {
		rules = append(rules, of[i].Capabilities...)
	}
	return rules, len(of) > 0
}

// Manifest reports whether a controller has everything that its manifest requests.
func (f File) Manifest(controller string) bool {
	return slices.ContainsFunc(f.Of(controller), func(d Document) bool { return d.Manifest })
}

// Finalizers returns the names of finalizers for a controller.
func (f File) Finalizers(controller string) (names []string) {
	for _, d := range f.Of(controller) {
		names = append(names, d.Finalizers...)
	}
	return names
}

// Controllers returns the names of controllers in documents.
func (f File) Controllers() []string {
	var names []string
	for i := range f {
		for _, name := range f[i].Controllers {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Parse reads a grant file:
//
//	apiVersion: wasmctl.dev/v1
//	kind: Grant
//	controller: web          # optional; or a list. Several documents may be for one controller
//	digests: sha256:1f0c...  # optional; of the module, or a list
//	signers: sha256:9a3e...  # optional; of the key that signed the module, or a list
//	capabilities:
//	- group: apps            # absent: the core group
//	  resource: deployments
//	  verbs: [get, list, watch, patch]
//	  namespaces: [shop]     # absent: all
//	  names: [web]           # absent: all
//	  fields: [spec.replicas]
//	finalizers: [example.com/web] # optional; see OwnFinalizer
//
// manifest: true, in place of capabilities and finalizers, grants everything that the manifest
// requests. The keys, except for the first three, are those of v1alpha1.Grant.
//
// The returned error joins all errors, each with path:line:column. For an unknown word, it suggests
// the nearest one.
func Parse(path string, content []byte) (File, error) {
	p := parser{Reader: strictyaml.Reader{Path: path}}
	var f File
	for _, root := range p.Documents(content, MaxDocuments) {
		f = append(f, p.document(root))
	}
	if len(f) == 0 && p.Wrong() == 0 {
		return nil, fmt.Errorf("%s: the file is empty: want apiVersion: %s, kind: %s and capabilities", path, APIVersion, Kind)
	}
	return f, p.Err()
}

// parser reads a file, and collects its errors.
type parser struct {
	strictyaml.Reader

	rules, rights, fields int // so far
}

func (p *parser) document(root *yaml.Node) Document {
	var d Document
	fields := p.Mapping(root, []string{"apiVersion", "kind", "controller", "digests", "signers", "manifest", "capabilities", "finalizers"})
	p.Constant(root, fields["apiVersion"], "apiVersion", APIVersion)
	p.Constant(root, fields["kind"], "kind", Kind)
	d.Controllers = p.controllers(fields["controller"])
	d.Digests, d.Signers = p.digests(fields["digests"], "digests"), p.digests(fields["signers"], "signers")
	d.Finalizers = p.texts(fields["finalizers"], "finalizers", MaxFinalizers)
	list, manifest := fields["capabilities"], fields["manifest"]
	d.Manifest = manifest != nil && manifest.Value == "true"
	switch {
	case manifest != nil && !d.Manifest && manifest.Value != "false":
		p.Bad(manifest, "manifest: want true or false")
	case d.Manifest && (list != nil || d.Finalizers != nil):
		p.Bad(manifest, "manifest: cannot be combined with capabilities or finalizers: it grants all that the manifest requests")
	case list == nil && !d.Manifest && root.Kind == yaml.MappingNode:
		p.Bad(root, "capabilities: is missing: list the granted ones; [] grants none")
	}
	if list == nil {
		return d
	}
	for _, n := range p.Sequence(list, "capabilities", MaxRules) {
		d.Capabilities = append(d.Capabilities, p.capability(n))
	}
	return d
}

func (p *parser) capability(n *yaml.Node) abi.Capability {
	fields := p.Mapping(n, []string{"group", "resource", "subresources", "verbs", "namespaces", "names", "fields"})
	list := func(key string) []string { return p.texts(fields[key], key, abi.BoundOf("capabilities."+key)) }
	c := abi.Capability{
		Group: p.text(fields["group"], "group"), Resource: p.text(fields["resource"], "resource"),
		Subresources: list("subresources"), Verbs: list("verbs"),
		Namespaces: list("namespaces"), Names: list("names"), Fields: list("fields"),
	}
	if n.Kind != yaml.MappingNode {
		return c
	}
	p.count(n, &c)
	if fields["resource"] == nil {
		p.Bad(n, "resource: is missing: want the plural, for example deployments")
	}
	p.webhook(n, &c)
	if fields["verbs"] == nil {
		p.Bad(n, "verbs: is missing: want some of %s, or \"*\"", strings.Join(verbs, ", "))
	}
	for _, v := range items(fields["verbs"]) {
		if v.Value != "*" && !slices.Contains(knownVerbs, v.Value) {
			p.Bad(v, "verbs: %s", strictyaml.Unknown(v.Value, knownVerbs))
		}
	}
	for _, v := range items(fields["fields"]) {
		if _, err := fieldpath.Parse(v.Value); err != nil && v.Kind == yaml.ScalarNode {
			p.Bad(v, "%w", err)
		}
	}
	return c
}

// count refuses a rule that exceeds the limits of the file.
func (p *parser) count(n *yaml.Node, c *abi.Capability) {
	if err := c.CheckLists(); err != nil {
		p.Bad(n, "%w", err)
		return
	}
	for _, total := range []struct {
		what        string
		sum         *int
		add, atMost int
	}{{"rules", &p.rules, 1, MaxRules}, {"rights", &p.rights, c.Count(), MaxRights}, {"fields", &p.fields, len(c.Fields), MaxFields}} {
		before := *total.sum
		if *total.sum += total.add; before <= total.atMost && *total.sum > total.atMost {
			p.Bad(n, "capabilities: the file has more than %d %s together; split it", total.atMost, total.what)
		}
	}
}

var (
	verbs      = kubeapi.SpellOut([]string{"*"})
	knownVerbs = slices.Concat(verbs, kubeapi.AdmissionVerbs, webhookVerbs)
)

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// text returns a scalar, or "".
func (p *parser) text(n *yaml.Node, key string) string {
	if n == nil {
		return ""
	}
	text, _ := p.Scalar(n, key)
	return text
}

// controllers returns a name, or a list of names. It is empty if the key is absent or the name is empty.
func (p *parser) controllers(n *yaml.Node) []string {
	if n != nil && n.Kind == yaml.SequenceNode {
		return p.texts(n, "controller", MaxDocuments)
	}
	if name := p.text(n, "controller"); name != "" {
		return []string{name}
	}
	return nil
}

// texts returns a list of scalars. It must not be empty, because an empty list would mean all.
func (p *parser) texts(n *yaml.Node, key string, most int) []string {
	if n == nil {
		return nil
	}
	var list []string
	for _, item := range p.Sequence(n, key, most) {
		text := p.text(item, key)
		if text == "" && item.Kind == yaml.ScalarNode && !strictyaml.IsNull(item) {
			p.Bad(item, "%s: is empty", key)
		}
		list = append(list, text)
	}
	if n.Kind == yaml.SequenceNode && len(list) == 0 {
		p.Bad(n, "%s: is empty: omit it, or list some", key)
	}
	return list
}

// Marshal writes a document in the form that Parse reads.
func (d *Document) Marshal() ([]byte, error) {
	var capabilities *[]abi.Capability // an empty list grants none
	if !d.Manifest || len(d.Capabilities) > 0 {
		capabilities = &d.Capabilities
	}
	var controllers any // absent, a name or a list
	switch len(d.Controllers) {
	case 0:
	case 1:
		controllers = d.Controllers[0]
	default:
		controllers = d.Controllers
	}
	return yaml.Marshal(struct {
		APIVersion   string            `yaml:"apiVersion"`
		Kind         string            `yaml:"kind"`
		Controller   any               `yaml:"controller,omitempty"`
		Digests      []string          `yaml:"digests,omitempty"`
		Signers      []string          `yaml:"signers,omitempty"`
		Manifest     bool              `yaml:"manifest,omitempty"`
		Capabilities *[]abi.Capability `yaml:"capabilities,omitempty"`
		Finalizers   []string          `yaml:"finalizers,omitempty"`
	}{APIVersion, Kind, controllers, d.Digests, d.Signers, d.Manifest, capabilities, d.Finalizers})
}
