// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"math/big"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// Beyond returns the verbs of a rule that the policy does not allow for all of its namespaces,
// names, subresources and fields.
//
// A rule stands for each combination of its lists, and a policy has many rules. Therefore, the
// rules that allow a namespace, a name or a subresource are computed once as a set, whose bits are the
// numbers of the rules, and each combination costs only the intersection of these sets.
func (p *Policy) Beyond(c *abi.Capability) (verbs []string) {
	if p.all {
		return nil
	}
	about := p.rulesAbout(c)
	subs, names := about.subresources(c), about.names(c)
	namespaces := about.namespaces(OrAny(c.Namespaces))
	writes := about.writes(c.Fields)
	for _, verb := range SpellOut(c.Verbs) {
		enough := isAny
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
			return !covered(about.verb(verb), subs, []*big.Int{ns}, names, isAny)
		}) {
			in = append(in, namespaces[i])
		}
	}
	return in
}

// covered reports whether the rules that allow a verb are enough for each combination of a
// subresource, a namespace and a name.
func covered(allow *big.Int, subs, namespaces, names []*big.Int, enough func(*big.Int) bool) bool {
	known := map[string]bool{} // of sets of rules that were already checked
	for _, sub := range subs {
		for _, ns := range namespaces {
			here := both(both(allow, sub), ns)
			for _, name := range names {
				rules := both(here, name)
				ok, seen := known[string(rules.Bytes())]
				if !seen {
					ok = enough(rules)
					known[string(rules.Bytes())] = ok
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

func (a *about) verb(verb string) *big.Int {
	return a.where(func(r *abi.Capability) bool {
		return slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, verbAll)
	})
}

func (a *about) names(c *abi.Capability) []*big.Int {
	return a.each(OrAny(c.Names), func(r *abi.Capability) []string { return r.Names })
}

func (a *about) namespaces(list []string) []*big.Int {
	return a.each(list, func(r *abi.Capability) []string { return r.Namespaces })
}

// subresources returns the rules for each of a rule's subresources. A rule without any is only about the
// object itself.
func (a *about) subresources(c *abi.Capability) []*big.Int {
	bare := a.where(func(r *abi.Capability) bool { return len(r.Subresources) == 0 })
	if len(c.Subresources) == 0 {
		return []*big.Int{bare}
	}
	subs := a.each(c.Subresources, func(r *abi.Capability) []string { return r.Subresources })
	for i := range subs {
		subs[i].AndNot(subs[i], bare)
	}
	return subs
}

// each returns, for each value, the rules whose list covers it. An empty list covers any value. The
// value "" means any, and only an empty list covers it.
func (a *about) each(values []string, list func(*abi.Capability) []string) []*big.Int {
	out, at := make([]*big.Int, len(values)), make(map[string][]int, len(values))
	for i, v := range values {
		out[i] = new(big.Int)
		at[v] = append(at[v], i)
	}
	everywhere := a.where(func(r *abi.Capability) bool { return len(list(r)) == 0 })
	for n, r := range a.rules {
		for _, v := range list(r) {
			for _, i := range at[v] {
				if v != "" {
					out[i].SetBit(out[i], n, 1)
				}
			}
		}
	}
	for i := range out {
		out[i].Or(out[i], everywhere)
	}
	return out
}

// writes returns a function that reports whether rules together allow writes to all fields of the
// patterns. No patterns mean all fields.
func (a *about) writes(patterns []string) func(*big.Int) bool {
	unlimited := a.where(func(r *abi.Capability) bool { return len(r.Fields) == 0 })
	wanted := make([]*big.Int, 0, len(patterns)) // the rules that include each pattern
	for _, text := range patterns {
		one, _ := fieldpath.ParseSet([]string{text}) // an unreadable pattern covers nothing
		include := new(big.Int)
		for n, set := range a.fields {
			if set != nil && set.Includes(one) {
				include.SetBit(include, n, 1)
			}
		}
		wanted = append(wanted, include)
	}
	return func(rules *big.Int) bool {
		if isAny(both(rules, unlimited)) {
			return true
		}
		return len(wanted) > 0 && isAny(rules) && !slices.ContainsFunc(wanted, func(include *big.Int) bool { return !isAny(both(rules, include)) })
	}
}

// where returns the rules that have a property.
func (a *about) where(is func(*abi.Capability) bool) *big.Int {
	b := new(big.Int)
	for n, r := range a.rules {
		if is(r) {
			b.SetBit(b, n, 1)
		}
	}
	return b
}

func both(a, b *big.Int) *big.Int { return new(big.Int).And(a, b) }

func isAny(rules *big.Int) bool { return rules.Sign() != 0 }
