// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestUsesOpenAPI_BeyondKubernetesLibraries: it has a package that the stand-in lacks,
// for which go list finds no folder; or libraries of others use those that it has.
func TestUsesOpenAPI_BeyondKubernetesLibraries(t *testing.T) {
	there := pkg{ImportPath: "k8s.io/kube-openapi/pkg/util", Dir: "/x"}
	using := func(module string) pkg {
		p := of(t, module, "a.go", there.ImportPath)
		p.ImportPath, p.Dir = module+"/x", "/y"
		return p
	}
	if usesOpenAPI([]pkg{there, using("k8s.io/client-go"), {ImportPath: "k8s.io/other"}}) {
		t.Error("all packages are there")
	}
	if !usesOpenAPI([]pkg{there, {ImportPath: "k8s.io/kube-openapi/pkg/common"}}) {
		t.Error("a package is missing")
	}
	if !usesOpenAPI([]pkg{there, using("sigs.k8s.io/kustomize/kyaml")}) {
		t.Error("a library of others uses it")
	}
}

// of returns a package of a module, with a file.
func of(t *testing.T, module, file string, imports ...string) (p pkg) {
	t.Helper()
	if err := json.Unmarshal([]byte(`{"Module":{"Path":"`+module+`"}}`), &p); err != nil {
		t.Fatal(err)
	}
	p.GoFiles, p.Imports = []string{"doc.go", file}, imports
	return p
}

// TestUnusedBy_KeepsProtobufForModulesOfOthers: it goes from all modules of Kubernetes whose
// encoders call one another, or from none.
func TestUnusedBy_KeepsProtobufForModulesOfOthers(t *testing.T) {
	api, audit := of(t, kubeAPI, "generated.pb.go"), of(t, "k8s.io/apiserver", "generated.pb.go", "k8s.io/api/authentication/v1")
	machinery := of(t, "k8s.io/apimachinery", "generated.pb.go")
	own := of(t, "example.com/op", "a.pb.go", "k8s.io/api/core/v1")
	other := of(t, "example.com/op", "a.pb.go", "google.golang.org/protobuf/proto")
	policy := of(t, "k8s.io/apiserver", "dispatch.go", "k8s.io/api/admissionregistration/v1") // prints API objects
	policy.ImportPath = "k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	for _, tc := range []struct {
		want     string
		packages []pkg
	}{
		{"k8s.io/api", []pkg{api, api, machinery, other}},
		{"k8s.io/api k8s.io/apiserver", []pkg{api, audit}},
		{"", []pkg{api, own, audit}},
		{"k8s.io/api k8s.io/apiserver", []pkg{api, audit, policy}},
	} {
		unused := unusedBy(tc.packages)
		if got := strings.Join(slices.Sorted(maps.Keys(unused[protobuf])), " "); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
		if docs := unused[docs][kubeAPI]; docs != (tc.packages[len(tc.packages)-1].ImportPath != policy.ImportPath) {
			t.Errorf("%s: documentation is unused: %v", tc.want, docs)
		}
	}
}

// TestUnusedBy_KeepsCBORForItsUsers: a client of client-go, or the program itself.
func TestUnusedBy_KeepsCBORForItsUsers(t *testing.T) {
	types := of(t, "k8s.io/apimachinery", "a.go", cborPackage+"/direct")
	for _, c := range []struct {
		user pkg
		want bool
	}{
		{types, true},
		{of(t, "k8s.io/client-go", "a.go", cborPackage), false},
		{of(t, "example.com/op", "a.go", cborPackage+"/direct"), false},
	} {
		if got := unusedBy([]pkg{types, c.user})[cbor]["k8s.io/apimachinery"]; got != c.want {
			t.Errorf("%s: CBOR is unused: %v, want %v", c.user.Module.Path, got, c.want)
		}
	}
}
