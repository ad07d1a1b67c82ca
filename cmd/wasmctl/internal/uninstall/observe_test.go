// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
)

// TestAdd_IgnoresStrangersWithTheLabels: copies of our objects, and objects that tenants have labeled, are not deleted, and they decide
// nothing about the installation.
func TestAdd_IgnoresStrangersWithTheLabels(t *testing.T) {
	roles := schema.GroupVersionResource{Group: rbac, Version: "v1", Resource: "roles"}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for name, c := range map[string]struct {
		gvr                     schema.GroupVersionResource
		namespace, name         string
		of, instance, component string
		want                    State
	}{
		"our ClusterRole":         {clusterRoles, "", "sys:w", "sys", "w", deploy.ComponentServe, State{Objects: make([]Object, 1)}},
		"a copy of it":            {clusterRoles, "", "auditors", "sys", "w", deploy.ComponentServe, State{}},
		"our Role in a namespace": {roles, "t", "w", "sys", "w", deploy.ComponentRun, State{Objects: make([]Object, 1)}},
		"a tenant's Role":         {roles, "t", "mine", "sys", "w", deploy.ComponentRun, State{}},
		"a tenant's ConfigMap":    {configMaps, "t", "w", "sys", "w", deploy.ComponentRun, State{}},
		"a tenant's Deployment":   {deployments, "t", "w", "sys", "w", deploy.ComponentServe, State{}},
		"our Deployment":          {deployments, "sys", "w", "sys", "w", deploy.ComponentServe, State{Objects: make([]Object, 1), Available: true}},
		"our run's Deployment":    {deployments, "sys", "w", "sys", "w", deploy.ComponentRun, State{Objects: make([]Object, 1), Available: true, Runs: true}},
		"our module":              {configMaps, "sys", "w-module-a", "sys", "w", deploy.ComponentServe, State{Objects: make([]Object, 1)}},
		"an admin's ConfigMap":    {configMaps, "sys", "notes", "sys", "w", deploy.ComponentServe, State{}},
		"another installation":    {clusterRoles, "", "sys2:w", "sys2", "w", deploy.ComponentServe, State{}},
		"a tenant's claim of one": {configMaps, "t", "w", "sys2", "w", deploy.ComponentServe, State{}},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"availableReplicas": int64(1)}}}
		o.SetNamespace(c.namespace)
		o.SetName(c.name)
		deploy.Mark([]any{o}, c.of, c.instance, c.component)
		s := &State{}
		s.add(c.gvr, o, "sys", "w")
		got := fmt.Sprint(len(s.Objects), s.Available, s.Runs)
		if want := fmt.Sprint(len(c.want.Objects), c.want.Available, c.want.Runs); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestOthers_AreThoseWithABinding: tenants cannot create a ClusterRoleBinding, so they cannot make a removal leave the CRDs. An installation
// whose binding is being deleted is being removed itself.
func TestOthers_AreThoseWithABinding(t *testing.T) {
	var bindings []unstructured.Unstructured
	for _, c := range []struct {
		object, of, name, component string
		deleting                    bool
	}{
		{"sys:w", "sys", "w", deploy.ComponentServe, false},
		{"sys:w2", "sys", "w2", deploy.ComponentServe, false},
		{"sys2:w", "sys2", "w", deploy.ComponentServe, false},
		{"gone:w", "gone", "w", deploy.ComponentServe, true},
		{"file:w", "file", "w", deploy.ComponentRun, false},
		{"a-copy", "sys3", "w", deploy.ComponentServe, false},
	} {
		o := unstructured.Unstructured{Object: map[string]any{}}
		o.SetName(c.object)
		deploy.Mark([]any{&o}, c.of, c.name, c.component)
		if c.deleting {
			o.SetDeletionTimestamp(new(metav1.Now()))
		}
		bindings = append(bindings, o)
	}
	if got, want := fmt.Sprint(others(bindings, abi.Key{Namespace: "sys", Name: "w"})), "[sys/w2 sys2/w]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
