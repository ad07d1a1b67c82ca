package operator

import "testing"

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
