// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Verbs of a policy, as in RBAC. An apply is a patch.
const (
	VerbGet    = "get"
	VerbList   = "list"
	VerbWatch  = "watch"
	VerbCreate = "create"
	VerbUpdate = "update"
	VerbPatch  = "patch"
	VerbDelete = "delete"

	// verbAll in a rule means every verb. It has no meaning in Attributes.
	verbAll = "*"
)

// allVerbs are the verbs that "*" means.
var allVerbs = []string{VerbGet, VerbList, VerbWatch, VerbCreate, VerbUpdate, VerbPatch, VerbDelete}

// AdmissionVerbs are the verbs that permit no request by themselves. The API server checks them in
// addition to the verb of a request: for the signers of certificates, for the rights in a role, for the
// devices of a node, and for what else an admission plugin guards. docs/capabilities.md has a table.
var AdmissionVerbs = []string{
	"approve", "sign", "attest", "bind", "escalate", "use",
	"associated-node:update", "associated-node:patch", "arbitrary-node:update", "arbitrary-node:patch",
}

// Attributes describe a request in the terms of RBAC.
type Attributes struct {
	Verb string
	// Group is empty for the core group; Resource is the plural.
	Group, Resource string
	// Subresource is empty for the object itself.
	Subresource string
	// Namespace is empty for a cluster-scoped resource, and for a list over all namespaces.
	Namespace string
	// Name is empty for a list, and for a create with a generated name.
	Name string
}

// Policy has the rights of a module. It denies everything that no rule allows. It never changes, so
// any number of goroutines may use it.
//
// ABI.md, section 8, defines the meaning of a rule. It is like in RBAC, with two differences:
//
//   - "*" stands for every verb. It has no special meaning in groups, resources and
//     subresources: a rule names them.
//   - A rule with names allows the creation of objects with these names. RBAC cannot, because it
//     does not know the name when it decides. A create with a generated name (generateName)
//     needs a rule without names.
//
// As in RBAC, a rule with names allows a list only if its field selector requires one of these
// names (metadata.name=x), and a rule with namespaces allows neither a list over all namespaces nor
// a cluster-scoped resource.
type Policy struct {
	rules []abi.Capability
	// fields has the patterns of each rule, or nil for a rule without a limit to fields. narrow
	// reports whether any rule has a limit.
	fields []*fieldpath.Set
	narrow bool
	// asked has the requests of the module and granted the operator's grant, if this policy is
	// their intersection. Otherwise they are nil.
	asked, granted *Policy
	all            bool // it allows everything
}

// NewPolicy returns a policy with exactly these rules. It retains their lists, which must not
// change afterwards. An invalid pattern of fields allows nothing. CheckRules reports it.
func NewPolicy(rules []abi.Capability) *Policy {
	p := &Policy{rules: slices.Clone(rules), fields: make([]*fieldpath.Set, len(rules))}
	for i := range rules {
		if len(rules[i].Fields) > 0 {
			p.fields[i], _ = fieldpath.ParseSet(rules[i].Fields)
			p.narrow = true
		}
	}
	return p
}

// Within returns the policy that allows what both this one and a grant's rules allow. Its refusals
// report whether the grant is the cause.
func (p *Policy) Within(grant []abi.Capability) *Policy {
	within := NewPolicy(Intersect(p.rules, grant))
	within.asked, within.granted = p, NewPolicy(grant)
	return within
}

// Narrowed returns the policy of rules that allow less than this one. Its refusals report whether
// these rules are the cause.
func (p *Policy) Narrowed(to []abi.Capability) *Policy {
	narrow := NewPolicy(to)
	narrow.asked, narrow.granted = p, narrow
	return narrow
}

// NewModulePolicy returns the rights of a module that reconciles a kind: get, list and watch of the
// kind, and get, update and patch of only its status, in the watched namespaces (if empty, in all),
// and the capabilities of its manifest.
func NewModulePolicy(reconciled kinds.Kind, namespaces []string, capabilities []abi.Capability) *Policy {
	own := abi.Capability{
		Group: reconciled.Group, Resource: reconciled.Resource, Verbs: []string{VerbGet, VerbList, VerbWatch},
	}
	if reconciled.Namespaced {
		own.Namespaces = slices.Clone(namespaces)
	}
	status := own
	status.Subresources, status.Verbs = []string{subresourceStatus}, []string{VerbGet, VerbUpdate, VerbPatch}
	status.Fields = []string{subresourceStatus} // writes to the status of most built-in kinds also write metadata
	return NewPolicy(append([]abi.Capability{own, status}, capabilities...))
}

// Allows reports whether a rule allows a request.
func (p *Policy) Allows(a Attributes) bool {
	return p.all || slices.ContainsFunc(p.rules, func(r abi.Capability) bool { return allows(&r, &a) })
}

// Missing returns the smallest rule for a manifest that would allow a request in its namespace. It
// omits the name: a controller rarely knows the names of its objects in advance.
func (p *Policy) Missing(a Attributes) abi.Capability {
	c := abi.Capability{Group: a.Group, Resource: a.Resource, Verbs: []string{a.Verb}}
	if a.Subresource != "" {
		c.Subresources = []string{a.Subresource}
	}
	if a.Namespace != "" {
		c.Namespaces = []string{a.Namespace}
	}
	return c
}

// check checks each of the verbs. The returned refusal has the missing verbs in one rule. It is nil
// if all are allowed.
func (p *Policy) check(a Attributes, verbs ...string) *refusal {
	var missing []string
	for _, a.Verb = range verbs {
		if !p.Allows(a) {
			missing = append(missing, a.Verb)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	a.Verb = missing[0]
	rule := p.Missing(a)
	rule.Verbs = missing
	return denial(&a, &rule, p.where(func(p *Policy) bool {
		return slices.ContainsFunc(missing, func(verb string) bool { asked := a; asked.Verb = verb; return !p.Allows(asked) })
	}))
}

// where returns the document in which a rule is missing.
func (p *Policy) where(lacks func(*Policy) bool) string {
	if p.asked == nil {
		return inManifest
	}
	manifest, grant := lacks(p.asked), lacks(p.granted)
	switch {
	case !grant:
		return inManifest
	case !manifest:
		return inGrant
	}
	return inBoth
}

// limits returns the fields that limit a permitted write, or nil without a limit.
func (p *Policy) limits(a *Attributes) *fieldpath.Set {
	if !p.narrow || !slices.Contains(writeVerbs, a.Verb) {
		return nil
	}
	var sets []*fieldpath.Set
	for i := range p.rules {
		if !allows(&p.rules[i], a) {
			continue
		}
		if p.fields[i] == nil {
			return nil
		}
		sets = append(sets, p.fields[i])
	}
	if len(sets) == 1 {
		return sets[0]
	}
	return fieldpath.Union(sets...)
}

// deniedFields returns the refusal of a write that touches fields beyond its limits.
func (p *Policy) deniedFields(a Attributes, fields []fieldpath.Path) *refusal {
	rule := p.Missing(a)
	for _, f := range fields {
		if text := f.String(); !slices.Contains(rule.Fields, text) {
			rule.Fields = append(rule.Fields, text)
		}
	}
	return denial(&a, &rule, p.where(func(p *Policy) bool {
		limits := p.limits(&a)
		if limits == nil {
			return false
		}
		missing, _ := limits.Missing(fieldpath.Fields(slices.Values(fields)), 1)
		return len(missing) > 0
	}))
}

func allows(r *abi.Capability, a *Attributes) bool {
	switch {
	case r.Group != a.Group || r.Resource != a.Resource:
		return false
	case !slices.Contains(r.Verbs, a.Verb) && !slices.Contains(r.Verbs, verbAll):
		return false
	case a.Subresource == "" && len(r.Subresources) > 0:
		return false
	case a.Subresource != "" && !slices.Contains(r.Subresources, a.Subresource):
		return false
	}
	return covers(r.Namespaces, a.Namespace) && covers(r.Names, a.Name)
}

// covers reports whether a list of a rule allows a value. An empty list allows any value. Another
// list allows only its elements, which never include "no value".
func covers(list []string, value string) bool {
	return len(list) == 0 || value != "" && slices.Contains(list, value)
}
