// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestReached_NamedTypesAndThoseOfTheirFields: also through a library of others, a dot import and another package
// of Kubernetes, and not a type that only Kubernetes' own package names.
func TestReached_NamedTypesAndThoseOfTheirFields(t *testing.T) {
	var packages []pkg
	for path, c := range map[string]struct{ module, src string }{
		"k8s.io/api/core/v1": {kubeAPI, "package v1\ntype Pod struct{ Spec PodSpec }\ntype PodSpec struct{ L []*Box }\ntype Box map[string]Pod\n" +
			"type Secret struct{}\ntype Node struct{}\ntype Event struct{}\nvar list = []any{&Node{}}\n"},
		"k8s.io/api/apps/v1":   {kubeAPI, "package v1\nimport corev1 \"k8s.io/api/core/v1\"\ntype Set struct{ corev1.Secret }\ntype Scale struct{}\n"},
		"k8s.io/api/batch/v1":  {kubeAPI, "package v1\ntype Job struct{}\n"},
		"example.com/op":       {"example.com/op", "package main\nimport (core \"k8s.io/api/core/v1\"; \"example.com/lib\")\nvar x core.Pod\nvar y lib.Y\n"},
		"example.com/lib":      {"example.com/lib", "package lib\nimport apps \"k8s.io/api/apps/v1\"\ntype Y = apps.Set\n"},
		"example.com/lib/dot":  {"example.com/lib", "package dot\nimport . \"k8s.io/api/batch/v1\"\nvar j = Job{}\n"},
		"k8s.io/client-go/tls": {"k8s.io/client-go", "package tls\nimport v1 \"k8s.io/api/core/v1\"\nvar e v1.Event\n"},
	} {
		var p pkg
		if err := json.Unmarshal([]byte(`{"ImportPath":"`+path+`","Module":{"Path":"`+c.module+`"}}`), &p); err != nil {
			t.Fatal(err)
		}
		p.Dir, p.GoFiles = t.TempDir(), []string{"a.go"}
		write(t, filepath.Join(p.Dir, "a.go"), c.src)
		if path != "k8s.io/api/core/v1" {
			p.Imports = []string{"k8s.io/api/core/v1", "k8s.io/api/apps/v1", "k8s.io/api/batch/v1"}
		}
		packages = append(packages, p)
	}
	reachable, err := reached(packages, map[string]bool{kubeAPI: true})
	if err != nil {
		t.Fatal(err)
	}
	const core, apps, batch = "k8s.io/api/core/v1", "k8s.io/api/apps/v1", "k8s.io/api/batch/v1"
	for at, want := range map[typeName]bool{
		{core, "Pod"}: true, {core, "PodSpec"}: true, {core, "Box"}: true, {apps, "Set"}: true, {core, "Secret"}: true,
		{batch, "Job"}: true, {core, "Event"}: true, {core, "Node"}: false, {apps, "Scale"}: false, {"example.com/lib", "Y"}: false,
	} {
		if reachable(at) != want {
			t.Errorf("%v: reachable: %v", at, !want)
		}
	}
}
