package project

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// folderOf writes files, by name, below a new folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOperatorRights_AreThoseOfTheMarkers(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"internal/controller/a.go": `package controller
// +kubebuilder:rbac:groups=batch.example.dev,resources=cronjobs;cronjobs/status,verbs=get;list;watch;update
//+kubebuilder:rbac:groups="",resources=pods,verbs=watch
	// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=core;apps,resources=deployments,resourceNames=a;b,namespace=system,verbs="*"
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create
// +kubebuilder:rbac:urls=/metrics,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=deletecollection
`,
		"b.go":                  "package main\n// +kubebuilder:rbac:groups=batch,resources=jobs,verbs={list,delete}\n",
		"vendor/x/x.go":         "// +kubebuilder:rbac:groups=vendor,resources=x,verbs=get\n",
		"x_test.go":             "// +kubebuilder:rbac:groups=test,resources=x,verbs=get\n",
		"config/rbac/role.yaml": "rules: [{apiGroups: [unread], resources: [x], verbs: [get]}]",
	})
	got, err := operatorRights(dir)
	if err == nil {
		t.Fatalf("a list with a comma is taken: %v", got)
	}
	if want := filepath.Join(dir, "b.go") + ":2: "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want it to begin with %s", err, want)
	}
	if err := os.Remove(filepath.Join(dir, "b.go")); err != nil {
		t.Fatal(err)
	}
	got, err = operatorRights(dir)
	some := []string{"get", "list", "update"}
	want := []abi.Capability{
		{Resource: "deployments", Verbs: []string{"*"}, Names: []string{"a", "b"}, Namespaces: []string{"system"}},
		{Group: "apps", Resource: "deployments", Verbs: []string{"*"}, Names: []string{"a", "b"}, Namespaces: []string{"system"}},
		{Group: "batch.example.dev", Resource: "cronjobs", Verbs: some},
		{Group: "batch.example.dev", Resource: "cronjobs", Subresources: []string{"status"}, Verbs: some},
		{Group: "batch", Resource: "jobs", Verbs: []string{"delete", "list"}},
		{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}

func TestOperatorRights_AreThoseOfTheRoleWithoutMarkers(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"main.go": "package main",
		"config/rbac/role.yaml": `kind: ClusterRole
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, watch]}]
---
kind: Role
rules: [{apiGroups: [apps], resources: [deployments/scale], verbs: [update]}]
`,
		"config/rbac/leader_election_role.yaml": "rules: [{apiGroups: [''], resources: [configmaps], verbs: [delete]}]",
	})
	got, err := operatorRights(dir)
	want := []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"get"}},
		{Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"update"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	if got, err := operatorRights(t.TempDir()); len(got) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}
