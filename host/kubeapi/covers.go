// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// Beyond returns the verbs of a rule that the policy does not allow for all of its namespaces,
// names, subresources and fields.
//
// A rule stands for each combination of its lists, and a policy has many rules. Therefore, the
// rules that allow a namespace, a name or a subresource are computed once as a set of bits, and
// each combination costs only the intersection of these sets.
func (p *Policy) Beyond(c *abi.Capability) (verbs []string) {
	if p.all {
		return nil
	}
	about := p.rulesAbout(c)
	subs, names := about.subresources(c), about.names(c)
	namespaces := about.namespaces(OrAny(c.Namespaces))
	writes := about.writes(c.Fields)
	for _, verb := range SpellOut(c.Verbs) {
		enough := bits.any
		if slices.Contains(writeVerbs, verb) {
			enough = writes
		}
		if !covered(about.verb(verb), subs, namespaces, names, enough) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// AllowedIn returns the namespaces (or "" for all) in which the policy allows all verbs of a rule,
// whatever its fields.
func (p *Policy) AllowedIn(c *abi.Capability, namespaces []string) (in []string) {
	if p.all {
		return namespaces
	}
	about := p.rulesAbout(c)
	subs, names := about.subresources(c), about.names(c)
	for i, ns := range about.namespaces(namespaces) {
		if !slices.ContainsFunc(SpellOut(c.Verbs), func(verb string) bool {
			return !covered(about.verb(verb), subs, []bits{ns}, names, bits.any)
		}) {
			in = append(in, namespaces[i])
		}
	}
	return in
}

// covered reports whether the rules that allow a verb are enough for each combination of a
// subresource, a namespace and a name.
func covered(allow bits, subs, namespaces, names []bits, enough func(bits) bool) bool {
	known := map[string]bool{} // of sets of rules that were already checked
	for _, sub := range subs {
		for _, ns := range namespaces {
			here := allow.and(sub).and(ns)
			for _, name := range names {
				rules := here.and(name)
				ok, seen := known[string(rules)]
				if !seen {
					ok = enough(rules)
					known[string(rules)] = ok
				}
				if !ok {
					return false
				}
			}
		}
	}
	return true
}

// about has the rules about one resource.
type about struct {
	rules  []*abi.Capability
	fields []*fieldpath.Set
}

func (p *Policy) rulesAbout(c *abi.Capability) *about {
	a := &about{}
	for i := range p.rules {
		if r := &p.rules[i]; r.Group == c.Group && r.Resource == c.Resource {
			a.rules, a.fields = append(a.rules, r), append(a.fields, p.fields[i])
		}
	}
	return a
}

func (a *about) verb(verb string) bits {
	return a.where(func(r *abi.Capability) bool {
		return slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, verbAll)
	})
}

func (a *about) names(c *abi.Capability) []bits {
	return a.bits(OrAny(c.Names), func(r *abi.Capability) []string { return r.Names })
}

func (a *about) namespaces(list []string) []bits {
	return a.bits(list, func(r *abi.Capability) []string { return r.Namespaces })
}

// subresources returns the bits of a rule's subresources. A rule without any is only about the
// object itself.
func (a *about) subresources(c *abi.Capability) []bits {
	bare := a.where(func(r *abi.Capability) bool { return len(r.Subresources) == 0 })
	if len(c.Subresources) == 0 {
		return []bits{bare}
	}
	subs := a.bits(c.Subresources, func(r *abi.Capability) []string { return r.Subresources })
	for i := range subs {
		subs[i] = subs[i].without(bare)
	}
	return subs
}

// bits returns, for each value, the rules whose list covers it. An empty list covers any value. The
// value "" means any, and only an empty list covers it.
func (a *about) bits(values []string, list func(*abi.Capability) []string) []bits {
	out, at := make([]bits, len(values)), make(map[string][]int, len(values))
	for i, v := range values {
		out[i] = a.none()
		at[v] = append(at[v], i)
	}
	everywhere := a.where(func(r *abi.Capability) bool { return len(list(r)) == 0 })
	for n, r := range a.rules {
		for _, v := range list(r) {
			for _, i := range at[v] {
				if v != "" {
					out[i].set(n)
				}
			}
		}
	}
	for i := range out {
		out[i] = out[i].or(everywhere)
	}
	return out
}

// writes returns a function that reports whether rules together allow writes to all fields of the
// patterns. No patterns mean all fields.
func (a *about) writes(patterns []string) func(bits) bool {
	unlimited := a.where(func(r *abi.Capability) bool { return len(r.Fields) == 0 })
	wanted := make([]bits, 0, len(patterns)) // the rules that include each pattern
	for _, text := range patterns {
		one, _ := fieldpath.ParseSet([]string{text}) // an unreadable pattern covers nothing
		include := a.none()
		for n, set := range a.fields {
			if set != nil && set.Includes(one) {
				include.set(n)
			}
		}
		wanted = append(wanted, include)
	}
	return func(rules bits) bool {
		if rules.and(unlimited).any() {
			return true
		}
		return len(wanted) > 0 && rules.any() && !slices.ContainsFunc(wanted, func(include bits) bool { return !rules.and(include).any() })
	}
}

func (a *about) none() bits { return make(bits, (len(a.rules)+7)/8) }

func (a *about) where(is func(*abi.Capability) bool) bits {
	b := a.none()
	for n, r := range a.rules {
		if is(r) {
			b.set(n)
		}
	}
	return b
}

// bits is a set of rules, by number. The sets of one about have the same length.
type bits []byte

func (b bits) set(n int) { b[n/8] |= 1 << (n % 8) }

func (b bits) and(o bits) bits {
	out := make(bits, len(b))
	for i := range b {
		out[i] = b[i] & o[i]
	}
	return out
}

func (b bits) or(o bits) bits {
	out := make(bits, len(b))
	for i := range b {
		out[i] = b[i] | o[i]
	}
	return out
}

func (b bits) without(o bits) bits {
	out := make(bits, len(b))
	for i := range b {
		out[i] = b[i] &^ o[i]
	}
	return out
}

func (b bits) any() bool { return slices.ContainsFunc(b, func(w byte) bool { return w != 0 }) }
