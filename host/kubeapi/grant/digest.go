package grant

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// MaxDigests is how many digests a document may name.
const MaxDigests = 20

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// digests reads one digest or a list of them.
func (p *parser) digests(n *yaml.Node) (list []string) {
	if n == nil {
		return nil
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		if nodes = p.Sequence(n, "digest", MaxDigests); len(n.Content) == 0 {
			p.Bad(n, "digest: is empty: omit it, or list some")
		}
	}
	for _, n := range nodes {
		text, ok := p.Scalar(n, "digest")
		if ok && !digest.MatchString(text) {
			p.Bad(n, "digest: %q: want sha256: and 64 hexadecimal digits in lower case, as wasmctl inspect prints them", text)
		}
		list = append(list, text)
	}
	return list
}

// For returns the documents for the module with a digest: without those that are
// bound to others. Others are these digests, where no document is bound to this one.
func (f File) For(digest string) (of File, others []string) {
	bound := false
	for _, d := range f {
		switch {
		case len(d.Digests) == 0:
			of = append(of, d)
		case slices.Contains(d.Digests, digest):
			of, bound = append(of, d), true
		default:
			others = append(others, d.Digests...)
		}
	}
	if bound {
		others = nil
	}
	return of, others
}
