// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
)

// A chart is created from the objects of a Config that has these placeholders for values that
// differ between releases.
const (
	markName      = "chart-release"
	markNamespace = "chart-namespace"
	markImage     = "chart-image"
	markReplicas  = 1<<31 - 2
)

// expressions maps placeholders to template expressions. text/template alone understands all of
// them.
var expressions = strings.NewReplacer(
	markName, "{{ .Release.Name }}", markNamespace, "{{ .Release.Namespace }}", markImage, "{{ .Values.image }}", "2147483646", "{{ .Values.replicas }}")

// conditions are the conditions for kinds of objects that a release may omit. Helm has several
// types of numbers, so their texts are compared.
var conditions = map[string]string{
	"PodDisruptionBudget": `ne (print .Values.replicas) "1"`,
	"PodMonitor":          ".Values.podMonitor",
}

var (
	marked    = regexp.MustCompile(`(?m)^( *(?:- )?(?:[\w./-]+: )?)(\S*chart-\S+)$`)
	resources = regexp.MustCompile(`(?m)^( +)resources:\n(?:\s+(?:limits|requests):\n(?:\s+(?:cpu|memory): \S+\n)+)+`)
)

// Chart returns the files of a Helm chart of wasmctl serve, by name. Its values are those of the
// Config. It elects a leader with any number of replicas, unless these share the objects. It has no
// Namespace, which Helm creates. rights returns the rights in a namespace.
func (c *Config) Chart(version string, rights func(namespace string) []abi.Capability) (map[string][]byte, error) {
	t := *c
	t.Name, t.Namespace, t.Image, t.Replicas, t.PodMonitor, t.Rights = markName, markNamespace, markImage, markReplicas, true, rights(markNamespace)
	files := map[string][]byte{}
	for _, object := range t.Objects() {
		b, err := YAML(object)
		if err != nil {
			return nil, err
		}
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(b, &head); err != nil {
			return nil, err
		}
		name := strings.ToLower(head.Kind)
		switch head.Kind {
		case "Namespace":
			continue
		case "CustomResourceDefinition": // Helm upgrades only CRDs in templates, and an uninstall must not delete their objects
			name += "-" + head.Metadata.Name
			b = []byte(strings.Replace(string(b), "  annotations:\n", "  annotations:\n    helm.sh/resource-policy: keep\n", 1))
		}
		files["templates/"+name+".yaml"] = []byte(template(string(b), c.condition(head.Kind)))
	}
	values := map[string]any{"image": c.Image, "replicas": c.Replicas, "podMonitor": c.PodMonitor, "resources": c.container().Resources}
	chart := map[string]any{
		"apiVersion": "v2", "name": "wasmctl", "version": version, "appVersion": version,
		"description": "Kubernetes controllers whose logic is a WebAssembly module: wasmctl serve",
	}
	var err, also error
	files["values.yaml"], err = yaml.Marshal(values)
	files["Chart.yaml"], also = yaml.Marshal(chart)
	return files, cmp.Or(err, also)
}

// condition returns the condition for a kind of object. It is empty if all releases have the
// object.
func (c *Config) condition(kind string) string {
	if c.Shards > 0 && kind == "PodDisruptionBudget" {
		return "" // it lets a single replica be evicted
	}
	return conditions[kind]
}

// template returns a template for an object, with an optional condition.
func template(object, condition string) string {
	object = resources.ReplaceAllString(object, "${1}resources:\n"+
		"${1}  limits:\n${1}    memory: \"{{ .Values.resources.limits.memory }}\"\n"+
		"${1}  requests:\n${1}    cpu: \"{{ .Values.resources.requests.cpu }}\"\n${1}    memory: \"{{ .Values.resources.requests.memory }}\"\n")
	object = expressions.Replace(marked.ReplaceAllString(object, `$1"$2"`)) // in quotes, because a release may be called 1
	if condition == "" {
		return object
	}
	return "{{- if " + condition + " }}\n" + object + "{{- end }}\n"
}

// WriteFiles writes files to a directory.
func WriteFiles(dir string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for everybody
			return err
		}
		if err := project.ReplaceFile(path, content); err != nil {
			return err
		}
	}
	return nil
}
