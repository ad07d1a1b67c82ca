// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"reflect"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestCapabilities_AreWhatWasLinked(t *testing.T) {
	got, _, err := parse(`[{"group":"","resource":"pods","subresources":["status"],"verbs":["get"],"names":["a"]}]`, nil)
	want := []wasmctl.Capability{{Resource: "pods", Subresources: []string{"status"}, Verbs: []string{"get"}, Names: []string{"a"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _, err := parse("", nil); got != nil || err != nil {
		t.Errorf("nothing linked: %v, %v", got, err)
	}
	if _, _, err := parse("{", nil); err == nil {
		t.Error("what cannot be read is no error")
	}
}

// A rule for all resources of a group becomes one rule for each kind in the
// scheme, regardless of its versions, and one for the status of kinds that have
// a status.
func TestCapabilities_NameTheResourcesOfAGroup(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, batchv1beta1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	got, bare, err := parse(`[{"group":"batch","resource":"*","verbs":["get"],"namespaces":["shop"]},{"group":"rbac.authorization.k8s.io","resource":"*","verbs":["list"]},
		{"group":"batch","resource":"*","subresources":["scale"],"verbs":["*"]},{"group":"shop.example.com","resource":"*","verbs":["get"]}]`, scheme)
	shop, list := []string{"shop"}, []string{"list"}
	want := []wasmctl.Capability{
		{Group: "batch", Resource: "cronjobs", Verbs: []string{"get"}, Namespaces: shop},
		{Group: "batch", Resource: "cronjobs", Subresources: []string{"status"}, Verbs: []string{"get"}, Namespaces: shop},
		{Group: "batch", Resource: "jobs", Verbs: []string{"get"}, Namespaces: shop},
		{Group: "batch", Resource: "jobs", Subresources: []string{"status"}, Verbs: []string{"get"}, Namespaces: shop},
		{Group: rbacv1.GroupName, Resource: "clusterrolebindings", Verbs: list},
		{Group: rbacv1.GroupName, Resource: "clusterroles", Verbs: list},
		{Group: rbacv1.GroupName, Resource: "rolebindings", Verbs: list},
		{Group: rbacv1.GroupName, Resource: "roles", Verbs: list},
		{Group: "batch", Resource: "cronjobs", Subresources: []string{"scale"}, Verbs: []string{"*"}},
		{Group: "batch", Resource: "jobs", Subresources: []string{"scale"}, Verbs: []string{"*"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(bare, []string{"shop.example.com"}) {
		t.Errorf("%+v, %q, %v", got, bare, err)
	}
}
