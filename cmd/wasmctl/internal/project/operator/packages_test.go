package operator

import (
	"encoding/json"
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

// TestWithProtobuf_LeavesItToModulesOfOthers: it goes from all modules of Kubernetes
// that need one another's, or from none.
func TestWithProtobuf_LeavesItToModulesOfOthers(t *testing.T) {
	api, audit := of(t, "k8s.io/api", "generated.pb.go"), of(t, "k8s.io/apiserver", "generated.pb.go", "k8s.io/api/authentication/v1")
	machinery := of(t, "k8s.io/apimachinery", "generated.pb.go")
	own := of(t, "example.com/op", "a.pb.go", "k8s.io/api/core/v1")
	other := of(t, "example.com/op", "a.pb.go", "google.golang.org/protobuf/proto")
	policy := of(t, "k8s.io/apiserver", "dispatch.go", "k8s.io/api/admissionregistration/v1") // prints kinds
	policy.ImportPath = "k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	for _, tc := range []struct {
		want     string
		packages []pkg
		texts    bool
	}{
		{"k8s.io/api", []pkg{api, api, machinery, other}, false},
		{"k8s.io/api k8s.io/apiserver", []pkg{api, audit}, false},
		{"", []pkg{api, own, audit}, false},
		{"", []pkg{api, audit, policy}, false},
		{"", []pkg{api, audit}, true},
	} {
		var got []string
		for _, c := range withProtobuf(tc.packages, tc.texts) {
			if c.drop("core/v1/generated.pb.go") {
				got = append(got, c.module)
			}
			if !c.drop("core/v1/types_swagger_doc_generated.go") || c.drop("core/v1/types.go") {
				t.Errorf("%s: what a module needs of it is wrong", c.module)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// TestMachinery_LeavesCBORToWhoUsesIt: a client of client-go, or the program itself.
func TestMachinery_LeavesCBORToWhoUsesIt(t *testing.T) {
	const file = "pkg/runtime/serializer/cbor/direct/direct.go"
	types := of(t, "k8s.io/apimachinery", "a.go", cbor+"/direct")
	for want, packages := range map[bool][]pkg{
		true: {types}, false: {types, of(t, "k8s.io/client-go", "a.go", cbor)},
	} {
		if c := machinery(packages); c.drop(file) != want || (c.add != "") != want {
			t.Errorf("CBOR goes: %v, want %v", !want, want)
		}
	}
	if machinery([]pkg{types, of(t, "example.com/op", "a.go", cbor+"/direct")}).drop(file) {
		t.Error("the program itself uses CBOR")
	}
}
