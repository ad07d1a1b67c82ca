// SPDX-License-Identifier: Apache-2.0

// Package strictyaml reads hand-written YAML. Unknown and duplicate keys are errors, and each error
// has its line and suggests the nearest word.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/internal/suggest"
)

// Reader collects the errors of a file during reading. Path is the file's name in messages.
type Reader struct {
	Path string

	errs []error
}

// maxErrors is the maximum number of reported errors.
const maxErrors = 100

// Bad adds an error at a node.
func (r *Reader) Bad(n *yaml.Node, format string, args ...any) {
	if len(r.errs) == maxErrors {
		return
	}
	r.errs = append(r.errs, fmt.Errorf("%s:%d:%d: %w", r.Path, n.Line, n.Column, fmt.Errorf(format, args...)))
}

// Wrong returns the number of errors so far.
func (r *Reader) Wrong() int { return len(r.errs) }

// Err joins all errors, each with path:line:column. It returns nil without errors.
func (r *Reader) Err() error { return errors.Join(r.errs...) }

// Documents returns the non-empty documents of a file. It reports an error for more than most.
func (r *Reader) Documents(content []byte, most int) []*yaml.Node {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var roots []*yaml.Node
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			return roots
		case err != nil:
			r.errs = append(r.errs, fmt.Errorf("%s: %s", r.Path, strings.TrimPrefix(err.Error(), "yaml: ")))
			return roots
		}
		root := Resolve(doc.Content[0])
		switch {
		case IsNull(root):
		case len(roots) == most:
			r.Bad(root, "too many documents: want at most %d", most)
			return roots
		default:
			roots = append(roots, root)
		}
	}
}

// Resolve follows an alias to its anchor, which is never an alias.
func Resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// IsNull reports whether a node is null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Mapping returns the values of a mapping by their keys, with aliases resolved. The keys must be in
// known, unless known is nil.
func (r *Reader) Mapping(n *yaml.Node, known []string) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		what := "names to values"
		if known != nil {
			what = strings.Join(known, ", ")
		}
		r.Bad(n, "want a mapping of %s", what)
		return fields
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], Resolve(n.Content[i+1])
		switch {
		case key.Value == "<<":
			r.Bad(key, "<<: merge keys are not supported")
		case known != nil && !slices.Contains(known, key.Value):
			r.Bad(key, "%s", Unknown(key.Value, known))
		case fields[key.Value] != nil && key.Value == "apiVersion": // joined files
			r.Bad(key, "apiVersion: appears twice; separate documents with ---")
		case fields[key.Value] != nil:
			r.Bad(key, "%s: appears twice", key.Value)
		default:
			fields[key.Value] = value
		}
	}
	return fields
}

// Unknown returns a message about an unknown word, with the word that was probably meant.
func Unknown(word string, known []string) string {
	if meant := suggest.Word(word, known); meant != "" {
		return fmt.Sprintf("%s: unknown key; did you mean %s?", word, meant)
	}
	return fmt.Sprintf("%s: unknown key; want one of %s", word, strings.Join(known, ", "))
}

// Constant checks that a field of a mapping has a value. n is nil if the field is missing.
func (r *Reader) Constant(parent, n *yaml.Node, key, want string) {
	switch {
	case n == nil && parent.Kind == yaml.MappingNode:
		r.Bad(parent, "%s: is missing: want %s: %s", key, key, want)
	case n != nil && n.Value != want:
		r.Bad(n, "%s: %q: want %s", key, n.Value, want)
	}
}

// Sequence returns the items of a list, with aliases resolved. It reports an error for more than
// most.
func (r *Reader) Sequence(n *yaml.Node, key string, most int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.Bad(n, "%s: want a list", key)
		return nil
	}
	if len(n.Content) > most {
		r.Bad(n, "%s: has %d entries, the limit is %d", key, len(n.Content), most)
		return nil
	}
	items := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		items[i] = Resolve(item)
	}
	return items
}

// Scalar returns the text of a scalar.
func (r *Reader) Scalar(n *yaml.Node, key string) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || IsNull(n) {
		r.Bad(n, "%s: want one value", key)
		return "", false
	}
	return n.Value, true
}
