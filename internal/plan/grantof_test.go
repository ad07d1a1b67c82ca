// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// TestGrantOf_HasEachFieldOfTheSpec: the grant of a spec has the rules, finalizers and digests of the spec.
func TestGrantOf_HasEachFieldOfTheSpec(t *testing.T) {
	digest := "sha256:1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c"
	rule := abi.Capability{
		Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"get", "patch"},
		Namespaces: []string{"shop"}, Names: []string{"web"}, Fields: []string{"spec.replicas"},
	}
	s := &v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{Grant: &v1alpha1.Grant{
		Capabilities: []abi.Capability{rule}, Finalizers: []string{"example.com/web"}, Digests: []string{digest},
	}}}
	got, err := GrantOf(s, nil)
	want := Grant{Path: "grant", File: grant.File{{Digests: []string{digest}, Capabilities: []abi.Capability{rule}, Finalizers: []string{"example.com/web"}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
