// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/strictjson"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// TestGrantOf_AFileHasTheKeysOfASpec: each key of the grant of a spec is one of a grant file, with the same meaning.
func TestGrantOf_AFileHasTheKeysOfASpec(t *testing.T) {
	digest, all := "sha256:"+strings.Repeat("a", 64), v1alpha1.FieldsOf(reflect.TypeFor[v1alpha1.Grant]())
	for _, text := range []string{
		`{"manifest":true,"digests":["` + digest + `"],"signers":["` + digest + `"]}`,
		`{"capabilities":[{"group":"apps","resource":"deployments","verbs":["get"]}],"finalizers":["example.com/web"]}`,
	} {
		s := &v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{Grant: &v1alpha1.Grant{}}}
		if err := strictjson.UnmarshalKnown([]byte(text), s.Grant); err != nil {
			t.Fatal(err)
		}
		ofSpec, err := GrantOf(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		ofFile, err := ParseGrant("grant", []byte(`{"apiVersion":"wasmctl.dev/v1","kind":"Grant",`+text[1:]))
		if diff := cmp.Diff(ofSpec, ofFile); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
		for key := range all {
			if strings.Contains(text, `"`+key+`":`) {
				delete(all, key)
			}
		}
	}
	if len(all) > 0 {
		t.Errorf("the test lacks the keys %v", all)
	}
}

// TestGrantOf_HasEachFieldOfTheSpec: the grant of a spec has the rules, finalizers, digests and signers of the spec.
func TestGrantOf_HasEachFieldOfTheSpec(t *testing.T) {
	digest := "sha256:1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c"
	rule := abi.Capability{
		Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"get", "patch"},
		Namespaces: []string{"shop"}, Names: []string{"web"}, Fields: []string{"spec.replicas"},
	}
	s := &v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{Grant: &v1alpha1.Grant{
		Capabilities: []abi.Capability{rule}, Finalizers: []string{"example.com/web"}, Digests: []string{digest}, Signers: []string{digest},
	}}}
	got, err := GrantOf(s, nil)
	want := Grant{Path: "grant", File: grant.File{{Digests: []string{digest}, Signers: []string{digest}, Capabilities: []abi.Capability{rule}, Finalizers: []string{"example.com/web"}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestGrantOf_DigestsBindTheManifest: a grant of the manifest's capabilities is for the modules with its digests only.
func TestGrantOf_DigestsBindTheManifest(t *testing.T) {
	own, other := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	s := &v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{Grant: &v1alpha1.Grant{Manifest: true, Digests: []string{own}}}}
	g, err := GrantOf(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := &Planner{Options: Options{Grant: g}, Controller: "web", Log: slog.New(slog.DiscardHandler)}
	if p, err := base.Of(own); err != nil || !p.Grant.File.Manifest("web") {
		t.Errorf("the module of the grant: %v", err)
	}
	if _, err := base.Of(other); failure.Of(err) != failure.Denied || !strings.Contains(err.Error(), own) {
		t.Errorf("another module: %v", err)
	}
	s.Grant.Digests = []string{"sha256:a"}
	if _, err := GrantOf(s, nil); failure.Of(err) != failure.Usage {
		t.Errorf("a partial digest: %v", err)
	}
}
