// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// TestReleaseRules_SurviveTheNamespace: the process may release the objects of a module with a finalizer, and of no other one, also after
// the roles of their namespace are gone.
func TestReleaseRules_SurviveTheNamespace(t *testing.T) {
	needs := grant.Needs{For: grant.Watch{Kind: kinds.Kind{Group: "example.dev", Version: "v1", Kind: "App", Resource: "apps", Namespaced: true}, Namespaces: []string{"shop"}}}
	if got := ReleaseRules(needs.Rules()); len(got) > 0 {
		t.Errorf("without a finalizer: %+v", got)
	}
	needs.Finalizer = true
	want := []abi.Capability{{Group: "example.dev", Resource: "apps", Verbs: []string{"get", "list", "patch"}}}
	if diff := cmp.Diff(want, ReleaseRules(needs.Rules())); diff != "" {
		t.Error(diff)
	}
}
