// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// Describe returns one line of text for each rule, without repetitions, to follow "may:", for example "get, patch
// configmaps in all namespaces" or "update deployments.apps/scale named web in namespaces a, b". A
// policy does not know whether a resource is cluster-scoped, so such a rule is "in all namespaces"
// too.
func (p *Policy) Describe() []string {
	if p.all {
		return []string{"do everything that the API server allows"}
	}
	lines := make([]string, 0, len(p.rules))
	for i := range p.rules {
		if line := describeRule(&p.rules[i]); !slices.Contains(lines, line) { // a manifest may request what is granted anyway
			lines = append(lines, line)
		}
	}
	return lines
}

func describeRule(r *abi.Capability) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(strings.Join(r.Verbs, ", "), verbAll, "do anything with") + " ")
	for i, sub := range OrAny(r.Subresources) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(resourceName(r.Group, r.Resource, sub))
	}
	if len(r.Fields) > 0 {
		b.WriteString(" (fields " + strings.Join(r.Fields, ", ") + ")")
	}
	if len(r.Names) > 0 {
		b.WriteString(" named " + strings.Join(r.Names, ", "))
	}
	switch len(r.Namespaces) {
	case 0:
		b.WriteString(" in all namespaces")
	case 1:
		b.WriteString(" in namespace " + r.Namespaces[0])
	default:
		b.WriteString(" in namespaces " + strings.Join(r.Namespaces, ", "))
	}
	return b.String()
}

// pasteRule writes a rule in the form of a manifest. JSON is valid YAML.
func pasteRule(c *abi.Capability) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("BUG: capability: " + err.Error()) // it has only strings and lists of strings
	}
	return string(b)
}

// Documents that can lack a rule.
const (
	inManifest = "the capabilities of its manifest"
	inGrant    = "the grant of the operator (--grant; for a Reconciler, spec.grant)"
	inBoth     = "the capabilities of its manifest, and to " + inGrant
	inRBAC     = "RBAC"
)

// denial returns the refusal of a request that a rule would allow.
func denial(a *Attributes, rule *abi.Capability, where string) *refusal {
	return &refusal{status: abi.StatusDenied, message: deniedMessage(a, rule, where), rule: rule, where: where}
}

// deniedMessage explains which right the module lacks, and how to allow it.
func deniedMessage(a *Attributes, rule *abi.Capability, where string) string {
	what := resourceName(a.Group, a.Resource, a.Subresource)
	if len(rule.Fields) > 0 {
		what = "the fields " + strings.Join(rule.Fields, ", ") + " of " + what
	}
	switch {
	case a.Namespace != "":
		what += " in namespace " + a.Namespace
	case a.Verb == VerbList:
		what += " in all namespaces"
	}
	return "the module may not " + strings.Join(rule.Verbs, ", ") + " " + what + "; to allow it, add this to " + where + ": " + pasteRule(rule)
}
