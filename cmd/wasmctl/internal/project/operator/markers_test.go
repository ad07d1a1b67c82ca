// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestMarkers_AreReadAsControllerGenWritesThem: quotes, braces and spaces, and a comma in the place
// of a semicolon.
func TestMarkers_AreReadAsControllerGenWritesThem(t *testing.T) {
	src := `package x
// +kubebuilder:rbac:groups="",resources=pods;pods/log,verbs=get;list
//+kubebuilder:rbac:groups={apps,"batch"},resources=deployments,verbs="*",namespace=shop,resourceNames=a;b
const s = "+kubebuilder:rbac:groups=no"
func f() {
	//+kubebuilder:rbac:urls=/metrics,verbs=get
	//+kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;create,update;list
}
`
	got, err := rulesOf("x.go", []byte(src))
	want := []rule{
		{groups: []string{""}, resources: []string{"pods", "pods/log"}, verbs: []string{"get", "list"}},
		{groups: []string{"apps", "batch"}, resources: []string{"deployments"}, verbs: []string{"*"}, namespace: "shop", names: []string{"a", "b"}},
		{verbs: []string{"get"}},
		{groups: []string{"apps"}, resources: []string{"deployments"}, verbs: []string{"get", "create", "update", "list"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = rulesOf("x.go", []byte("package x\n\n//+kubebuilder:rbac:group=apps\n"))
	if err == nil || !strings.Contains(err.Error(), "x.go:3:1") {
		t.Errorf("a key that is not known: %v", err)
	}
}

// TestCapabilities_AskForWhatAModuleNeeds: rules add up. Watches and the manager's own rights are
// omitted, and rules for everything are reported.
func TestCapabilities_AskForWhatAModuleNeeds(t *testing.T) {
	rules := []rule{
		{groups: []string{"core"}, resources: []string{"pods", "events"}, verbs: []string{"get", "watch"}},
		{groups: []string{""}, resources: []string{"pods", "pods/status"}, verbs: []string{"deletecollection"}},
		{groups: []string{"coordination.k8s.io"}, resources: []string{"leases"}, verbs: []string{"*"}},
		{groups: []string{"*"}, resources: []string{"widgets"}, verbs: []string{"get"}},
		{groups: []string{"apps"}, resources: []string{"*"}, verbs: []string{"get"}},
		{groups: []string{"batch"}, resources: []string{"jobs"}, verbs: []string{"watch"}},
		{groups: []string{""}, resources: []string{"secrets"}, verbs: []string{"list", "watch"}},
		{groups: []string{"batch"}, resources: []string{"jobs"}, verbs: []string{"get", "*"}, names: []string{"a"}, namespace: "shop"},
		{groups: []string{"authorization.k8s.io"}, resources: []string{"subjectaccessreviews"}, verbs: []string{"create"}},
		{groups: []string{"certificates.k8s.io"}, resources: []string{"signers"}, verbs: []string{"approve", "impersonate"}, names: []string{"a.b/c"}},
		{verbs: []string{"get"}}, // of a URL
	}
	got, refused := capabilities(rules, true)
	want := []abi.Capability{
		{Resource: "pods", Verbs: []string{"delete", "get", "list"}},
		{Resource: "pods", Subresources: []string{"status"}, Verbs: []string{"delete", "list"}},
		{Resource: "secrets", Verbs: []string{"get", "list"}},
		{Group: "apps", Resource: "*", Verbs: []string{"get"}},
		{Group: "batch", Resource: "jobs", Verbs: []string{"*"}, Namespaces: []string{"shop"}, Names: []string{"a"}},
		{Group: "certificates.k8s.io", Resource: "signers", Verbs: []string{"approve"}, Names: []string{"a.b/c"}},
		{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(refused, []string{"*/widgets"}) {
		t.Errorf("refused: %q", refused)
	}
	reviews := abi.Capability{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}}
	if got, _ := capabilities(rules, false); !slices.ContainsFunc(got, func(c abi.Capability) bool { return reflect.DeepEqual(c, reviews) }) {
		t.Errorf("of a program that guards no metrics: %+v", got)
	}
}
