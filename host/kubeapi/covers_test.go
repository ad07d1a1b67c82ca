// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// beyondOneByOne is the dumb model of Beyond: each combination is asked for.
func beyondOneByOne(p *Policy, c *abi.Capability) (verbs []string) {
	wanted, _ := fieldpath.ParseSet(c.Fields)
	may := func(a Attributes) bool {
		limits := p.limits(&a)
		return p.Allows(a) && (limits == nil || len(c.Fields) > 0 && limits.Includes(wanted))
	}
	for _, verb := range SpellOut(c.Verbs) {
		missing := false
		for _, sub := range OrAny(c.Subresources) {
			for _, ns := range OrAny(c.Namespaces) {
				for _, name := range OrAny(c.Names) {
					missing = missing || !may(Attributes{Group: c.Group, Resource: c.Resource, Subresource: sub, Verb: verb, Namespace: ns, Name: name})
				}
			}
		}
		if missing {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// TestBeyond_AgreesWithEachCombination on random rules, lists with an empty entry
// among them.
func TestBeyond_AgreesWithEachCombination(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "*"}
	rule := func() abi.Capability {
		c := randomRule(r)
		c.Group, c.Resource, c.Verbs = "", words[r.IntN(2)], slices.Clone(verbs[r.IntN(4):4+r.IntN(5)])
		if r.IntN(20) == 0 {
			c.Names = []string{""}
		}
		for range r.IntN(3) {
			c.Fields = append(c.Fields, []string{"spec", "spec.a", "metadata.labels", "spec.b[*]", "spec.b[name=x].c", "bad..field"}[r.IntN(6)])
		}
		return c
	}
	covered := 0
	for range 100_000 {
		rules := make([]abi.Capability, r.IntN(12))
		for i := range rules {
			rules[i] = rule()
		}
		c := rule()
		p := NewPolicy(rules)
		want := beyondOneByOne(p, &c)
		if diff := cmp.Diff(want, p.Beyond(&c)); diff != "" {
			t.Fatalf("%+v under %+v (-want +got):\n%s", c, rules, diff)
		}
		if len(want) == 0 {
			covered++
		}
	}
	if covered < 1000 {
		t.Errorf("only %d were covered: the random rules test little", covered)
	}
}

// TestAllowedIn_AgreesWithEachNamespace on random rules.
func TestAllowedIn_AgreesWithEachNamespace(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	some := 0
	for range 50_000 {
		rules := make([]abi.Capability, r.IntN(6))
		for i := range rules {
			rules[i] = randomRule(r)
		}
		p, c := NewPolicy(rules), randomRule(r)
		c.Verbs = []string{"get", "list"}
		var want []string
		for _, ns := range append([]string{""}, words...) {
			one := c
			one.Namespaces, one.Fields = []string{ns}, nil
			if len(beyondOneByOne(p, &one)) == 0 {
				want = append(want, ns)
			}
		}
		if diff := cmp.Diff(want, p.AllowedIn(&c, append([]string{""}, words...))); diff != "" {
			t.Fatalf("%+v under %+v (-want +got):\n%s", c, rules, diff)
		}
		some += len(want)
	}
	if some < 1000 {
		t.Errorf("only %d namespaces were allowed: the random rules test little", some)
	}
}

// atTheBounds has the maximum manifest, and a grant of the maximum size, all about one resource.
func atTheBounds() map[string]struct{ asked, granted []abi.Capability } {
	rules := func(n, names, fields int, prefix string) (list []abi.Capability) {
		for i := range n {
			c := abi.Capability{Resource: "pods", Verbs: []string{"patch"}}
			for j := range names {
				c.Names = append(c.Names, fmt.Sprint("x", j))
			}
			for j := range fields {
				c.Fields = append(c.Fields, fmt.Sprintf("spec.%s%d.f%d", prefix, i, j))
			}
			list = append(list, c)
		}
		return list
	}
	pairs := abi.Capability{Resource: "pods", Verbs: []string{"get"}}
	for i := range 70 {
		pairs.Names, pairs.Namespaces = append(pairs.Names, fmt.Sprint("x", i)), append(pairs.Namespaces, fmt.Sprint("n", i))
	}
	return map[string]struct{ asked, granted []abi.Capability }{
		"names":  {rules(100, 50, 0, "a"), rules(1000, 20, 0, "b")},
		"fields": {rules(100, 50, 5, "a"), rules(1000, 20, 2, "a")},
		"pairs":  {[]abi.Capability{pairs}, append(rules(999, 20, 0, "b"), pairs)},
		"alone":  {rules(100, 50, 5, "a"), rules(100, 50, 5, "a")},
	}
}

// TestPolicy_IsRightAtTheBounds: a rule that is granted as it is asked for has nothing
// beyond, and one of more names or fields has.
func TestPolicy_IsRightAtTheBounds(t *testing.T) {
	covered := map[string]int{"names": 0, "fields": 0, "pairs": 1, "alone": 100}
	for name, c := range atTheBounds() {
		p, got := NewPolicy(c.granted), 0
		for i := range c.asked {
			if len(p.Beyond(&c.asked[i])) == 0 {
				got++
			}
		}
		if got != covered[name] {
			t.Errorf("%s: %d of %d rules are covered, want %d", name, got, len(c.asked), covered[name])
		}
	}
}

// BenchmarkPolicy_AtTheBounds measures loading a hostile manifest.
func BenchmarkPolicy_AtTheBounds(b *testing.B) {
	for name, c := range atTheBounds() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := NewPolicy(c.granted)
				for i := range c.asked {
					p.Beyond(&c.asked[i])
				}
				Intersect(c.asked, c.granted)
				p.AllowedIn(&c.asked[0], c.granted[len(c.granted)-1].Namespaces)
			}
		})
	}
}
