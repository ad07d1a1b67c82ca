package kubeapi

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Verbs of a policy: those of RBAC. An apply is a patch.
const (
	VerbGet    = "get"
	VerbList   = "list"
	VerbWatch  = "watch"
	VerbCreate = "create"
	VerbUpdate = "update"
	VerbPatch  = "patch"
	VerbDelete = "delete"

	// verbAll in a rule is every verb; it has no meaning in Attributes.
	verbAll = "*"
)

// allVerbs are those that "*" stands for.
var allVerbs = []string{VerbGet, VerbList, VerbWatch, VerbCreate, VerbUpdate, VerbPatch, VerbDelete}

// Attributes says what a request wants to do, in the words of RBAC.
type Attributes struct {
	Verb string
	// Group is empty for the core group; Resource is the plural.
	Group, Resource string
	// Subresource is empty for the object itself.
	Subresource string
	// Namespace is empty for a cluster-scoped resource, and for a list over all
	// namespaces.
	Namespace string
	// Name is empty where no single object is meant: a list, and a create whose
	// name the API server makes up.
	Name string
}

// Policy says what a module may do. It denies whatever no rule allows, and it
// never changes, so that any number of goroutines may ask it.
//
// A rule is read as ABI.md section 8 says, which is as RBAC reads it, but for
// two differences:
//
//   - "*" stands for every verb. It is not special in groups, resources and
//     subresources: a rule names what it is about.
//   - A rule with names allows the creation of objects of these names. RBAC
//     cannot, since it does not know the name when it decides; we do. A create
//     that leaves the name to the API server (generateName) needs a rule
//     without names.
//
// As in RBAC, a rule with names allows a list only where its field selector
// asks for one of these names (metadata.name=x), and a rule with namespaces
// allows neither a list over all namespaces nor a cluster-scoped resource.
type Policy struct {
	rules []abi.Capability
	// fields has the patterns of each rule, nil for one that is not limited to
	// fields; narrow says that any rule is.
	fields []*fieldpath.Set
	narrow bool
	// asked is what the module asks for and granted what the operator grants, if
	// this is what both allow; else they are nil.
	asked, granted *Policy
	all            bool // it allows everything
}

// NewPolicy returns a policy of these rules and no other. It keeps the lists in
// them: they must not be changed any longer. A pattern of fields that cannot be
// read allows nothing; CheckRules tells.
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

// Within returns the policy of what both this one and a grant's rules allow. A
// refusal says whether the grant is in the way.
func (p *Policy) Within(grant []abi.Capability) *Policy {
	within := NewPolicy(Intersect(p.rules, grant))
	within.asked, within.granted = p, NewPolicy(grant)
	return within
}

// Narrowed returns the policy of rules that allow less than this one. A refusal
// says whether they are in the way.
func (p *Policy) Narrowed(to []abi.Capability) *Policy {
	narrow := NewPolicy(to)
	narrow.asked, narrow.granted = p, narrow
	return narrow
}

// NewModulePolicy returns the rights of a module that reconciles a kind:
// get, list and watch of the kind, and get, update and patch of its status, but of
// nothing else by it, in the namespaces that are watched (none: all); and the
// capabilities of its manifest.
func NewModulePolicy(reconciled kinds.Kind, namespaces []string, capabilities []abi.Capability) *Policy {
	own := abi.Capability{
		Group: reconciled.Group, Resource: reconciled.Resource, Verbs: []string{VerbGet, VerbList, VerbWatch},
	}
	if reconciled.Namespaced {
		own.Namespaces = slices.Clone(namespaces)
	}
	status := own
	status.Subresources, status.Verbs = []string{subresourceStatus}, []string{VerbGet, VerbUpdate, VerbPatch}
	status.Fields = []string{subresourceStatus} // that of most built-in kinds writes metadata too
	return NewPolicy(append([]abi.Capability{own, status}, capabilities...))
}

// Allows reports whether a rule allows what a wants to do.
func (p *Policy) Allows(a Attributes) bool {
	return p.all || slices.ContainsFunc(p.rules, func(r abi.Capability) bool { return allows(&r, &a) })
}

// Missing returns the smallest rule of a manifest that would allow what a wants
// to do in its namespace. It omits the name: a controller rarely knows the
// names of its objects beforehand.
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

// check asks for each of the verbs. The refusal that it returns names those that
// are missing in one rule; nil means that all are allowed.
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

// where says where a rule is missing.
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

// limits returns the fields that a write which the policy allows is limited to,
// nil for no limit.
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

// deniedFields is the refusal of a write that touches fields beyond its limits.
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

// covers reports whether a list of a rule allows a value: an empty list allows
// any, another one only what stands in it, which "no value" never does.
func covers(list []string, value string) bool {
	return len(list) == 0 || value != "" && slices.Contains(list, value)
}
