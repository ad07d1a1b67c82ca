// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// judge creates a Reconciler whose module denies each ConfigMap with the label wrong in its namespace. The module also has a conversion,
// which no Reconciler serves.
func (t *tenant) judge() {
	t.Helper()
	rule := abi.WebhookRule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"configmaps"}, Operations: []abi.Operation{abi.OperationCreate}}
	m := &abi.Manifest{
		Webhooks:    []abi.Webhook{{Type: abi.WebhookValidate, Path: "/validate", Objects: "wrong", Rules: []abi.WebhookRule{rule}}},
		Conversions: []abi.Conversions{{Group: "example.dev", Kind: "Web", Versions: []string{"v1", "v2"}}},
	}
	t.create("judge", map[string]any{
		"module": t.module("judge", enginetest.Judging(t, map[string]any{"denied": map[string]any{"message": "denied in " + t.ns}}, m)),
		"for":    map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "grant": map[string]any{"manifest": true},
		"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
	})
}

// createDry creates a ConfigMap in a dry run.
func (t *tenant) createDry(labels map[string]string) error {
	_, err := t.client.CoreV1().ConfigMaps(t.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: labels}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// denied reports whether the tenant's own module, and no other, denies a wrong ConfigMap.
func (t *tenant) denied() bool {
	err := t.createDry(map[string]string{"wrong": "yes"})
	return err != nil && strings.Contains(err.Error(), "denied in "+t.ns)
}

// TestServe_WebhooksOfTenants: the module of each tenant judges the objects of its namespace. A Reconciler that is suspended or deleted judges
// nothing.
func TestServe_WebhooksOfTenants(t *testing.T) {
	t.Parallel()
	tenants := []*tenant{newTenant(t), newTenant(t)}
	c := startServe(tenants[0], "-n", tenants[1].ns, "--webhook-address", "127.0.0.1:0")
	for _, tenant := range tenants {
		tenant.judge()
	}
	for _, tenant := range tenants {
		r := tenant.condition("judge", v1alpha1.WebhooksRegistered, "True", "Succeeded")
		enginetest.Until(t, "a wrong object is denied", tenant.denied)
		if err := tenant.createDry(nil); err != nil {
			t.Errorf("%s: %v", tenant.ns, err)
		}
		for _, condition := range r.Status.Conditions {
			if condition.Type == v1alpha1.Granted && condition.Status != metav1.ConditionTrue {
				t.Errorf("%s: %+v", tenant.ns, condition)
			}
		}
	}
	accepted := func(tenant *tenant) func() bool {
		return func() bool { return tenant.createDry(map[string]string{"wrong": "yes"}) == nil }
	}
	tenants[0].patch("judge", map[string]any{"suspend": true})
	enginetest.Until(t, "a suspended Reconciler judges nothing", accepted(tenants[0]))
	if !tenants[1].denied() {
		t.Error("the other tenant's Reconciler judges nothing either")
	}
	tenants[1].must(tenants[1].dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tenants[1].ns).Delete(t.Context(), "judge", metav1.DeleteOptions{}))
	enginetest.Until(t, "a deleted Reconciler judges nothing", accepted(tenants[1]))
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
