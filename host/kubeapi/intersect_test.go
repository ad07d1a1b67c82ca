// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

func randomRules(r *rand.Rand) []abi.Capability {
	rules := make([]abi.Capability, r.IntN(4))
	for i := range rules {
		rules[i] = randomRule(r)
		for range r.IntN(3) {
			rules[i].Fields = append(rules[i].Fields, []string{"spec", "spec.a", "metadata.labels"}[r.IntN(3)])
		}
	}
	return rules
}

// TestWithin_AllowsWhatBothAllow on random rules: never more than the manifest,
// never more than the grant, and never less than both.
func TestWithin_AllowsWhatBothAllow(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	yes := 0
	for range 60000 {
		asked, granted := randomRules(r), randomRules(r)
		p, m, g := NewPolicy(asked).Within(granted), NewPolicy(asked), NewPolicy(granted)
		for range 20 {
			a := randomAttributes(r)
			want := m.Allows(a) && g.Allows(a)
			if want && a.Verb == VerbCreate && disjoint(m.limits(&a), g.limits(&a)) {
				want = false // there is no field left to write
			}
			if got := p.Allows(a); got != want {
				t.Fatalf("%+v: asked %+v, granted %+v: allowed %v, want %v", a, asked, granted, got, want)
			}
			if want {
				yes++
			}
		}
	}
	if yes < 300 {
		t.Errorf("only %d were allowed: the random rules test little", yes)
	}
}

// disjoint reports whether two sets of the fields of randomRules have nothing in
// common.
func disjoint(a, b *fieldpath.Set) bool {
	if a == nil || b == nil {
		return false
	}
	for _, text := range []string{"spec.a", "spec.b", "metadata.labels"} {
		p, err := fieldpath.Parse(text)
		if err != nil {
			panic(err)
		}
		inA, _ := a.Covers(p)
		inB, _ := b.Covers(p)
		if inA && inB {
			return false
		}
	}
	return true
}

// TestWithin_WritesWhatBothLetWrite: the fields of an allowed write are those
// that both rules cover.
func TestWithin_WritesWhatBothLetWrite(t *testing.T) {
	rule := func(verbs string, fields ...string) []abi.Capability {
		return []abi.Capability{{Resource: "configmaps", Verbs: strings.Split(verbs, ","), Fields: fields}}
	}
	for _, tt := range []struct {
		asked, granted []abi.Capability
		want           string
	}{
		{rule("*"), rule("patch,get", "data"), "patch, get configmaps (fields data) in all namespaces"},
		{rule("patch", "data.a", "metadata.labels"), rule("*", "data"), "patch configmaps (fields data.a) in all namespaces"},
		{rule("get,patch", "spec"), rule("*", "data"), "get configmaps in all namespaces"},
		{rule("patch", "spec"), rule("*", "data"), "nothing"},
		{rule("*", "spec"), rule("*", "data"), "get, list, watch, delete configmaps in all namespaces"},
	} {
		if got := NewPolicy(tt.asked).Within(tt.granted).String(); got != tt.want {
			t.Errorf("%v within %v: %s, want %s", tt.asked, tt.granted, got, tt.want)
		}
	}
}

// TestDenied_SaysWhereARuleIsMissing in the manifest, the grant or both.
func TestDenied_SaysWhereARuleIsMissing(t *testing.T) {
	get := func(resource string) abi.Capability {
		return abi.Capability{Resource: resource, Verbs: []string{"get"}}
	}
	p := NewPolicy([]abi.Capability{get("configmaps"), get("pods")}).Within([]abi.Capability{get("pods"), get("secrets")})
	for resource, want := range map[string]string{"configmaps": inGrant, "secrets": inManifest, "nodes": inBoth, "pods": ""} {
		denied := p.check(Attributes{Verb: VerbGet, Resource: resource, Namespace: "a"}, VerbGet)
		if want == "" {
			if denied != nil {
				t.Errorf("%s: %v", resource, denied)
			}
			continue
		}
		if denied == nil || !strings.Contains(denied.message, "add this to "+want+": {") {
			t.Errorf("%s: %v, want %s", resource, denied, want)
		}
	}
}

func TestCheckRules_NamesTheRule(t *testing.T) {
	err := CheckRules([]abi.Capability{{Resource: "pods", Verbs: []string{"get"}}, {Verbs: []string{"get"}}, {Resource: "pods", Verbs: []string{"get"}, Fields: []string{"a..b"}}})
	if err == nil || cmp.Diff(strings.Split(err.Error(), "\n")[0], "capabilities[1]: resource and verbs are required") != "" || !strings.Contains(err.Error(), `capabilities[2]: field "a..b"`) {
		t.Error(err)
	}
}
