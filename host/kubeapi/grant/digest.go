// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// MaxDigests is the maximum number of digests in a document, and of signers.
const MaxDigests = 20

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// digests reads one digest or a list of them, of modules or of keys.
func (p *parser) digests(n *yaml.Node, key string) (list []string) {
	if n == nil {
		return nil
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		if nodes = p.Sequence(n, key, MaxDigests); len(n.Content) == 0 {
			p.Bad(n, "%s: is empty: omit it, or list some", key)
		}
	}
	for _, n := range nodes {
		text, ok := p.Scalar(n, key)
		if ok && !digest.MatchString(text) {
			p.Bad(n, "%s: %q: want sha256: and 64 hexadecimal digits in lower case, as wasmctl inspect prints them", key, text)
		}
		list = append(list, text)
	}
	return list
}

// Bound identifies the modules for which documents are: those with one of the digests, or those
// that one of the signers has signed.
type Bound struct{ Digests, Signers []string }

// For returns the documents for a module with a digest and these signers. It omits documents that
// are bound to others. If none is bound to this module, others has the modules to which they are
// bound.
func (f File) For(digest string, signers []string) (of File, others Bound) {
	bound := false
	for _, d := range f {
		isSigner := func(s string) bool { return slices.Contains(signers, s) }
		switch {
		case len(d.Digests) > 0 && !slices.Contains(d.Digests, digest):
			others.Digests = append(others.Digests, d.Digests...)
		case len(d.Signers) > 0 && !slices.ContainsFunc(d.Signers, isSigner):
			others.Signers = append(others.Signers, d.Signers...)
		default:
			of, bound = append(of, d), bound || len(d.Digests)+len(d.Signers) > 0
		}
	}
	if bound {
		others = Bound{}
	}
	return of, others
}
