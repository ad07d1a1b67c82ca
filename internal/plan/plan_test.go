package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// TestPlaced_OwnedKindsAreWatchedWhereTheirOwnersAre: an owner reference does
// not cross namespaces, so the namespace of the owners wins.
func TestPlaced_OwnedKindsAreWatchedWhereTheirOwnersAre(t *testing.T) {
	namespaced := kinds.Kind{Namespaced: true}
	for name, c := range map[string]struct {
		owners []string
		all    bool
		kind   kinds.Kind
		watch  []string
		want   []string
	}{
		"the owners' namespace":           {[]string{"a"}, false, namespaced, nil, []string{"a"}},
		"it wins over the manifest's":     {[]string{"a"}, false, namespaced, []string{"b"}, []string{"a"}},
		"owners everywhere: the manifest": {nil, false, namespaced, []string{"b"}, []string{"b"}},
		"-A wins over the manifest":       {nil, true, namespaced, []string{"b"}, nil},
		"cluster-scoped: none":            {[]string{"a"}, false, kinds.Kind{}, nil, nil},
	} {
		o := &Options{AllNamespaces: c.all}
		got := o.Placed(Watched{Watch: abi.Watch{Namespaces: c.owners}}, Watched{Kind: c.kind, Watch: abi.Watch{Map: abi.MapOwner, Namespaces: c.watch}})
		if diff := cmp.Diff(c.want, got.Watch.Namespaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A rule of a manifest that cannot be read is the module's fault, and named:
// the policy would take it for one that allows nothing.
func TestGrantTo_RefusesRulesThatCannotBeRead(t *testing.T) {
	for want, rule := range map[string]abi.Capability{
		"resource and verbs are needed": {Resource: "pods"},
		"a..b":                          {Resource: "pods", Verbs: []string{"patch"}, Fields: []string{"a..b"}},
	} {
		p := Planner{Options: Options{Grant: Grant{Manifest: true}}}
		err := p.grant(t.Context(), Watched{}, &Plan{Manifest: &abi.Manifest{Capabilities: []abi.Capability{rule}}})
		if failure.Of(err) != failure.Module || !strings.Contains(err.Error(), "capabilities[0]") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v", rule, err)
		}
	}
}
