package operator

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestUsesOpenAPI_ByAPackageThatTheStandInLacks: go list finds no folder for it.
func TestUsesOpenAPI_ByAPackageThatTheStandInLacks(t *testing.T) {
	there := pkg{ImportPath: "k8s.io/kube-openapi/pkg/util", Dir: "/x"}
	if usesOpenAPI([]pkg{there, {ImportPath: "k8s.io/other"}}) {
		t.Error("all packages are there")
	}
	if !usesOpenAPI([]pkg{there, {ImportPath: "k8s.io/kube-openapi/pkg/common"}}) {
		t.Error("a package is missing")
	}
}

// TestWithProtobuf_LeavesItToModulesOfOthers: it goes from all modules of Kubernetes
// that need one another's, or from none.
func TestWithProtobuf_LeavesItToModulesOfOthers(t *testing.T) {
	of := func(module, file string, imports ...string) pkg {
		var p pkg
		if err := json.Unmarshal([]byte(`{"Module":{"Path":"`+module+`"}}`), &p); err != nil {
			t.Fatal(err)
		}
		p.GoFiles, p.Imports = []string{"doc.go", file}, imports
		return p
	}
	api, audit := of("k8s.io/api", "generated.pb.go"), of("k8s.io/apiserver", "generated.pb.go", "k8s.io/api/authentication/v1")
	machinery := of("k8s.io/apimachinery", "generated.pb.go")
	own := of("example.com/op", "a.pb.go", "k8s.io/api/core/v1")
	other := of("example.com/op", "a.pb.go", "google.golang.org/protobuf/proto")
	for want, packages := range map[string][]pkg{
		"k8s.io/api": {api, api, machinery, other}, "k8s.io/api k8s.io/apiserver": {api, audit}, "": {api, own, audit},
	} {
		var got []string
		for _, c := range withProtobuf(packages) {
			got = append(got, c.module)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
