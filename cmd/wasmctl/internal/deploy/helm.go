// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// A chart is created from the objects of a Config that has these placeholders for the name and the
// namespace of a release.
const (
	markName      = "chart-release"
	markNamespace = "chart-namespace"
)

// expressions maps placeholders to template expressions.
var expressions = strings.NewReplacer(markName, "{{ .Release.Name }}", markNamespace, "{{ .Release.Namespace }}")

// conditions are the conditions for kinds of objects that a release may omit.
var conditions = map[string]string{
	"CustomResourceDefinition": ".Values.crds.enabled",
	"NetworkPolicy":            ".Values.networkPolicy.enabled",
	"PodDisruptionBudget":      "and .Values.podDisruptionBudget.enabled (gt (int .Values.replicas) 1)",
	PodMonitor:                 ".Values.podMonitor.enabled",
	ServiceMonitor:             ".Values.serviceMonitor.enabled",
}

// notes is what helm install prints.
const notes = `wasmctl serve is installed. To wait until it is ready, and to test it:

    kubectl -n {{ .Release.Namespace }} rollout status deployment/{{ .Release.Name }}
    helm -n {{ .Release.Namespace }} test {{ .Release.Name }}

It runs a module for each Reconciler of the cluster:

    kubectl get reconcilers --all-namespaces

After helm uninstall, the process takes its finalizers off, and ends. The Reconcilers and their CRDs stay. To remove them too, use
wasmctl uninstall instead.
`

// Chart returns the files of a Helm chart of wasmctl serve, by name. Its values have the defaults of
// the Config. It elects a leader with any number of replicas, unless these share the objects. It has no
// Namespace, which Helm creates. rights returns the rights in a namespace.
func (c *Config) Chart(version string, rights func(namespace string) []abi.Capability) (map[string][]byte, error) {
	t := *c
	t.Name, t.Namespace, t.Rights = markName, markNamespace, rights(markNamespace)
	t.RegistryAllow, t.Args = nil, nil // values
	t.Replicas, t.Monitors = max(c.Replicas, 2), []string{PodMonitor, ServiceMonitor}
	values := c.values()
	t.Webhooks = false
	files, err := t.templates(values)
	if err != nil {
		return nil, err
	}
	t.Webhooks, t.ShareObjects, t.Shards = true, true, cmp.Or(t.Shards, DefaultShards) // the API server calls any replica
	enabled, err := t.templates(values)
	if err != nil {
		return nil, err
	}
	for name, content := range enabled {
		files[name] = either(".Values.webhooks.enabled", content, files[name])
	}
	files["templates/NOTES.txt"] = []byte(notes)
	var errs [3]error
	files["values.yaml"], errs[0] = valuesFile(values)
	files["values.schema.json"], errs[1] = json.MarshalIndent(schemaOf(values), "", "  ")
	files["Chart.yaml"], errs[2] = yaml.Marshal(map[string]any{
		"apiVersion": "v2", "type": "application", "name": "wasmctl", "version": version, "appVersion": version,
		"description": "Kubernetes controllers whose logic is a WebAssembly module: wasmctl serve",
		"home":        "https://github.com/wasmctl/wasmctl",
	})
	return files, errors.Join(errs[:]...)
}

// templates returns a template for each object, by the name of its file.
func (c *Config) templates(values []value) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, object := range c.Objects() {
		tree, err := fieldsOf(object)
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{Object: tree}
		name, kind := strings.ToLower(o.GetKind()), o.GetKind()
		switch kind {
		case "Namespace":
			continue
		case "CustomResourceDefinition": // Helm upgrades only CRDs in templates, and an uninstall must not delete their objects
			name += "-" + o.GetName()
			if err := unstructured.SetNestedField(tree, "keep", "metadata", "annotations", "helm.sh/resource-policy"); err != nil {
				return nil, err
			}
		}
		mark(tree, values)
		if kind == "Deployment" {
			if files["templates/tests/test.yaml"], err = template(testPod(o), "", values); err != nil {
				return nil, err
			}
		}
		if files["templates/"+name+".yaml"], err = template(tree, c.condition(kind), values); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// either returns a template with one of two contents. They share the lines at the beginning and at the end, unless the conditions of the
// objects differ.
func either(condition string, yes, no []byte) []byte {
	if bytes.Equal(yes, no) {
		return yes
	}
	a, b := bytes.SplitAfter(yes, []byte("\n")), bytes.SplitAfter(no, []byte("\n"))
	first, last := 0, 0
	for first < min(len(a), len(b)) && bytes.Equal(a[first], b[first]) {
		first++
	}
	for first > 0 && last < min(len(a), len(b))-first && bytes.Equal(a[len(a)-1-last], b[len(b)-1-last]) {
		last++
	}
	var out bytes.Buffer
	line := func(text string) { out.WriteString("{{- " + text + " }}\n") }
	out.Write(bytes.Join(a[:first], nil))
	line("if " + condition)
	out.Write(bytes.Join(a[first:len(a)-last], nil))
	if first < len(b)-last {
		line("else")
		out.Write(bytes.Join(b[first:len(b)-last], nil))
	}
	line("end")
	out.Write(bytes.Join(a[len(a)-last:], nil))
	return out.Bytes()
}

// condition returns the condition for a kind of object. It is empty if all releases have the
// object.
func (c *Config) condition(kind string) string {
	if c.Shards > 0 && kind == "PodDisruptionBudget" {
		return ".Values.podDisruptionBudget.enabled" // it lets a single replica be evicted
	}
	return conditions[kind]
}

// testPod returns the pod of helm test, with the account, the image and the security settings of the marked Deployment. It fails unless the
// account may list the Reconcilers of the cluster.
func testPod(deployment *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec") // a copy
	containers, _, _ := unstructured.NestedSlice(spec, "containers")
	container, _ := containers[0].(map[string]any)
	container["args"] = []any{"release", "--for", "reconcilers.wasmctl.dev", "--finalizer", "wasmctl.dev/serve", "--all", "--dry-run"}
	for _, field := range []string{"ports", "livenessProbe", "readinessProbe"} {
		delete(container, field)
	}
	for _, field := range []string{"initContainers", "topologySpreadConstraints", "terminationGracePeriodSeconds"} {
		delete(spec, field)
	}
	spec["containers"], spec["restartPolicy"] = []any{container}, "Never"
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{
			"name": markName + "-test", "namespace": markNamespace,
			"annotations": map[string]any{"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation"},
			// Not the labels of the Deployment's pods, which the Service selects.
			"labels": map[string]any{"app.kubernetes.io/name": "wasmctl-test", "app.kubernetes.io/instance": markName},
		},
	}
}

// marked matches a line with a mark, and named one with a placeholder.
var (
	marked = regexp.MustCompile(`(?m)^( *)(.*?)values-(\w+) ([\w.]+)(?:: "")?$`)
	named  = regexp.MustCompile(`(?m)^( *(?:- )?(?:[\w./-]+: )?)(\S*chart-\S+)$`)
)

// mark puts marks for values into the fields of an object.
func mark(object map[string]any, values []value) {
	for _, v := range values {
		for _, place := range v.places {
			if kind, path, _ := strings.Cut(place, " "); kind == object["kind"] {
				put(object, strings.Split(path, "."), v.use, "values-"+string(v.use)+" "+v.name)
			}
		}
	}
}

// put puts a mark at a path, and returns the changed node.
func put(node any, path []string, how use, mark string) any {
	if len(path) == 0 {
		switch n := node.(type) {
		case []any:
			if how == extends || how == arguments {
				return append(n, mark)
			}
		case map[string]any:
			if how == extends {
				n[mark] = ""
				return n
			}
		}
		return mark
	}
	switch n := node.(type) {
	case []any:
		n[0] = put(n[0], path[1:], how, mark) // all paths lead to the first item
	case map[string]any:
		if old, ok := n[path[0]]; ok || how != replaces {
			n[path[0]] = put(old, path[1:], how, mark)
		}
	}
	return node
}

// template returns a template for a marked object, with an optional condition.
func template(object map[string]any, condition string, values []value) ([]byte, error) {
	b, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := expressions.Replace(named.ReplaceAllString(string(b), `$1"$2"`)) // in quotes, because a release may be called 1
	out = marked.ReplaceAllStringFunc(out, func(line string) string {
		m := marked.FindStringSubmatch(line)
		return insertion(m[1], m[2], use(m[3]), m[4], values)
	})
	if condition != "" {
		out = "{{- if " + condition + " }}\n" + out + "{{- end }}\n"
	}
	return []byte(out), nil
}

// insertion returns the text of a template that inserts a value. field is the field's name with a colon, or
// empty.
func insertion(indent, field string, how use, name string, values []value) string {
	var scalar bool
	for _, v := range values {
		scalar = scalar || v.name == name && v.schema.scalar()
	}
	block := func(of, indent string) string {
		return "{{ toYaml " + of + " | indent " + strconv.Itoa(len(indent)) + " }}"
	}
	one := func(of string) string {
		if scalar {
			return indent + field + "{{ toJson " + of + " }}"
		}
		return indent + strings.TrimRight(field, " ") + "\n" + block(of, indent+"  ")
	}
	path := ".Values." + name
	switch how {
	case replaces:
		return one(path)
	case fills:
		return "{{- with " + path + " }}\n" + one(".") + "\n{{- end }}"
	case arguments:
		return "{{- range " + path + " }}\n" + indent + "- {{ print \"" + registryAllow + "\" . | toJson }}\n{{- end }}"
	default:
		return "{{- with " + path + " }}\n" + block(".", indent) + "\n{{- end }}"
	}
}

// WriteFiles writes files to a directory.
func WriteFiles(dir string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for everybody
			return err
		}
		if err := atomicfile.Replace(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
