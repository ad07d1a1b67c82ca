// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

func TestPolicy_Allows(t *testing.T) {
	cm := func(change func(*abi.Capability)) []abi.Capability {
		c := abi.Capability{Resource: "configmaps", Verbs: []string{"get"}}
		change(&c)
		return []abi.Capability{c}
	}
	same := func(*abi.Capability) {}
	get := Attributes{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "x"}
	with := func(change func(*Attributes)) Attributes {
		a := get
		change(&a)
		return a
	}
	tests := []struct {
		name  string
		rules []abi.Capability
		ask   Attributes
		want  bool
	}{
		{"nothing is allowed by no rule", nil, get, false},
		{"the rule's verb", cm(same), get, true},
		{"another verb", cm(same), with(func(a *Attributes) { a.Verb = "patch" }), false},
		{"every verb", cm(func(c *abi.Capability) { c.Verbs = []string{"*"} }), with(func(a *Attributes) { a.Verb = "delete" }), true},
		{"another group", cm(same), with(func(a *Attributes) { a.Group = "apps" }), false},
		{"another resource", cm(same), with(func(a *Attributes) { a.Resource = "secrets" }), false},
		{"a star is no group", cm(func(c *abi.Capability) { c.Group = "*" }), get, false},
		{"a star is no resource", cm(func(c *abi.Capability) { c.Resource = "*" }), get, false},
		{"a star is no namespace", cm(func(c *abi.Capability) { c.Namespaces = []string{"*"} }), get, false},
		{"a rule about the object is not about its status", cm(same), with(func(a *Attributes) { a.Subresource = "status" }), false},
		{"a rule about the status is not about the object", cm(func(c *abi.Capability) { c.Subresources = []string{"status"} }), get, false},
		{
			"a rule about the status", cm(func(c *abi.Capability) { c.Subresources = []string{"scale", "status"} }),
			with(func(a *Attributes) { a.Subresource = "status" }), true,
		},
		{"its namespace", cm(func(c *abi.Capability) { c.Namespaces = []string{"b", "a"} }), get, true},
		{"another namespace", cm(func(c *abi.Capability) { c.Namespaces = []string{"b"} }), get, false},
		{
			"all namespaces with a rule of some", cm(func(c *abi.Capability) { c.Namespaces, c.Verbs = []string{"a"}, []string{"list"} }),
			Attributes{Verb: "list", Resource: "configmaps"},
			false,
		},
		{
			"all namespaces with a rule of all", cm(func(c *abi.Capability) { c.Verbs = []string{"list"} }),
			Attributes{Verb: "list", Resource: "configmaps"},
			true,
		},
		{"its name", cm(func(c *abi.Capability) { c.Names = []string{"x"} }), get, true},
		{"another name", cm(func(c *abi.Capability) { c.Names = []string{"y"} }), get, false},
		{
			"a list with a rule of names", cm(func(c *abi.Capability) { c.Names, c.Verbs = []string{"x"}, []string{"list"} }),
			Attributes{Verb: "list", Resource: "configmaps", Namespace: "a"},
			false,
		},
		{
			"a create of its name", cm(func(c *abi.Capability) { c.Names, c.Verbs = []string{"x"}, []string{"create"} }),
			with(func(a *Attributes) { a.Verb = "create" }), true,
		},
		{
			"a create of a generated name", cm(func(c *abi.Capability) { c.Names, c.Verbs = []string{"x"}, []string{"create"} }),
			with(func(a *Attributes) { a.Verb, a.Name = "create", "" }), false,
		},
		{"the second rule", append(cm(func(c *abi.Capability) { c.Verbs = nil }), cm(same)...), get, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := NewPolicy(tt.rules).Allows(tt.ask); got != tt.want {
				t.Errorf("Allows(%+v) by %+v = %v, want %v", tt.ask, tt.rules, got, tt.want)
			}
		})
	}
}

// words are few, so that random rules and questions meet.
var words = []string{"a", "b", "c"}

func randomWords(r *rand.Rand) []string {
	var list []string
	for range r.IntN(3) {
		list = append(list, words[r.IntN(len(words))])
	}
	return list
}

func randomRule(r *rand.Rand) abi.Capability {
	verbs := []string{"get", "list", "create", "*"}
	return abi.Capability{
		Group: words[r.IntN(2)], Resource: words[r.IntN(2)], Verbs: []string{verbs[r.IntN(len(verbs))]},
		Subresources: randomWords(r), Namespaces: randomWords(r), Names: randomWords(r),
	}
}

func randomAttributes(r *rand.Rand) Attributes {
	maybe := func() string { return append([]string{""}, words...)[r.IntN(4)] }
	return Attributes{
		Verb: []string{"get", "list", "create"}[r.IntN(3)], Group: words[r.IntN(2)], Resource: words[r.IntN(2)],
		Subresource: maybe(), Namespace: maybe(), Name: maybe(),
	}
}

// spelledOut writes a rule as the flat list of all that it allows, over the
// words of this test: the dumb model of a policy.
func spelledOut(rules []abi.Capability) map[Attributes]bool {
	all := func(list []string) []string {
		if len(list) == 0 {
			return append([]string{""}, words...)
		}
		return list
	}
	allowed := map[Attributes]bool{}
	for _, r := range rules {
		subs, verbs := r.Subresources, r.Verbs
		if len(subs) == 0 {
			subs = []string{""}
		}
		if slices.Contains(verbs, "*") {
			verbs = []string{"get", "list", "create"}
		}
		for _, verb := range verbs {
			for _, sub := range subs {
				for _, ns := range all(r.Namespaces) {
					for _, name := range all(r.Names) {
						allowed[Attributes{verb, r.Group, r.Resource, sub, ns, name}] = true
					}
				}
			}
		}
	}
	return allowed
}

func TestPolicy_AgreesWithModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	yes, no := 0, 0
	for range 2000 {
		rules := []abi.Capability{randomRule(r), randomRule(r)}
		p, model := NewPolicy(rules), spelledOut(rules)
		for range 20 {
			a := randomAttributes(r)
			if got := p.Allows(a); got != model[a] {
				t.Fatalf("Allows(%+v) by %+v = %v, the model says %v", a, rules, got, model[a])
			}
			if model[a] {
				yes++
			} else {
				no++
			}
		}
	}
	if yes < 100 || no < 100 {
		t.Errorf("%d yes and %d no: the random rules test little", yes, no)
	}
}

func TestPolicy_MissingRuleIsEnoughAndNoMore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		a, other := randomAttributes(r), randomAttributes(r)
		p := NewPolicy([]abi.Capability{NewPolicy(nil).Missing(a)})
		if !p.Allows(a) {
			t.Fatalf("the rule that is said to be missing for %+v does not allow it: %v", a, p)
		}
		sameButName := other
		sameButName.Name = a.Name
		if a.Namespace != "" && p.Allows(other) && sameButName != a {
			t.Fatalf("the rule that is missing for %+v allows %+v too", a, other)
		}
	}
}

func TestModulePolicy_ImpliesRightsOfReconciledKind(t *testing.T) {
	gen := kinds.Kind{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", Resource: "configmapgenerators", Namespaced: true}
	caps := []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"get", "patch"}},
		{Group: gen.Group, Resource: gen.Resource, Verbs: []string{"get", "list", "watch"}, Namespaces: []string{"a", "b"}}, // described once
	}
	want := []string{
		"get, list, watch configmapgenerators.examples.wasmctl.dev in namespaces a, b",
		"get, update, patch configmapgenerators.examples.wasmctl.dev/status (fields status) in namespaces a, b",
		"get, patch configmaps in all namespaces",
	}
	if diff := cmp.Diff(want, NewModulePolicy(gen, []string{"a", "b"}, caps).Describe()); diff != "" {
		t.Error(diff)
	}
	node := kinds.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
	if got := NewModulePolicy(node, []string{"a"}, nil).String(); strings.Contains(got, "namespace a") {
		t.Errorf("a cluster-scoped kind is bound to a namespace: %s", got)
	}
}

func TestPolicy_Describe(t *testing.T) {
	p := NewPolicy([]abi.Capability{
		{Group: "apps", Resource: "deployments", Subresources: []string{"scale", "status"}, Verbs: []string{"update"}, Namespaces: []string{"a"}, Names: []string{"x", "y"}},
		{Resource: "secrets", Verbs: []string{"*"}},
	})
	want := "update deployments.apps/scale, deployments.apps/status named x, y in namespace a; do anything with secrets in all namespaces"
	if got := p.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := NewPolicy(nil).String(); got != "nothing" {
		t.Errorf("no rules: %q", got)
	}
}
