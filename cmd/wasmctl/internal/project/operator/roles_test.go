// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestRules_OfRolesInFiles: each role of each file counts, with its namespace. Other objects in the
// output of helm template, and roles for people, do not. A named file must exist and have rules.
func TestRules_OfRolesInFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "config", "rbac", "role.yaml"), "kind: ClusterRole\nrules:\n- {apiGroups: [apps], resources: [deployments], verbs: [get]}\n")
	chart := filepath.Join(root, "chart.yaml")
	write(t, chart, `---
# Source: chart/templates/role.yaml
kind: Role
metadata: {namespace: shop}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [key], verbs: [get]}
---
kind: Deployment
rules: none
---
kind: ClusterRole
metadata: {labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
rules:
- {apiGroups: [apps], resources: [daemonsets], verbs: [get]}
`)
	p := &Project{Root: root, Roles: []string{chart}}
	got, err := p.rules(nil)
	want := []rule{
		{groups: []string{"apps"}, resources: []string{"deployments"}, verbs: []string{"get"}},
		{groups: []string{""}, resources: []string{"secrets"}, names: []string{"key"}, verbs: []string{"get"}, namespace: "shop"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	empty := filepath.Join(root, "empty.yaml")
	write(t, empty, "kind: Deployment\n")
	for _, file := range []string{empty, filepath.Join(root, "none.yaml")} {
		if _, err := (&Project{Root: root, Roles: []string{file}}).rules(nil); err == nil {
			t.Errorf("%s is no error", file)
		}
	}
	if got, err := (&Project{Root: t.TempDir()}).rules(nil); err != nil || len(got) > 0 {
		t.Errorf("without any role: %v, %v", got, err)
	}
}

// TestRules_RefuseKeysThatReadersDisagreeOn: the rights of a module must not depend on the reader of a role.
func TestRules_RefuseKeysThatReadersDisagreeOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "role.yaml")
	for _, rule := range []string{"{resources: [pods], verbs: [get], Verbs: [delete]}", "{resources: [pods], verbs: [get], verbs: [delete]}"} {
		write(t, file, "kind: Role\nrules:\n- "+rule+"\n")
		if got, _, err := rulesOfFile(file); err == nil {
			t.Errorf("%s: %v", rule, got)
		}
	}
}

// TestRights_NameEachGroupAndResource: rights of programs that are not operators. A rule for all groups, or
// for all resources of a group, is an error that names it, because such a program has no list of kinds.
func TestRights_NameEachGroupAndResource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roles.yaml")
	write(t, file, `kind: ClusterRole
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create, patch, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}
---
kind: Role
metadata: {namespace: shop}
rules:
- {apiGroups: [apps], resources: [deployments/scale], verbs: [patch]}
`)
	got, err := Rights([]string{file})
	want := []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"create", "patch"}},
		{Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"patch"}, Namespaces: []string{"shop"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	write(t, file, "kind: ClusterRole\nrules:\n- {apiGroups: [apps], resources: ['*'], verbs: [get]}\n- {apiGroups: ['*'], resources: [pods], verbs: [get]}\n")
	if _, err := Rights([]string{file}); err == nil || !strings.Contains(err.Error(), "apps/*") || !strings.Contains(err.Error(), "*/pods") {
		t.Errorf("rules for everything: %v", err)
	}
}
