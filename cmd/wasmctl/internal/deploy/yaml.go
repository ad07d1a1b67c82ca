// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// YAML writes an object like kubectl, without the fields that only a server sets.
func YAML(object any) ([]byte, error) {
	fields, err := fieldsOf(object)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(fields)
}

// fieldsOf returns the fields of an object, without those that only a server sets.
func fieldsOf(object any) (map[string]any, error) {
	if fields, ok := object.(map[string]any); ok {
		return fields, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	prune(fields)
	return fields, nil
}

// prune removes nulls and empty maps, which Go's types produce. It preserves the empty map of an
// emptyDir, which has a meaning.
func prune(fields map[string]any) {
	for key, value := range fields {
		switch v := value.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			if prune(v); len(v) == 0 && key != "emptyDir" {
				delete(fields, key)
			}
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					prune(m)
				}
			}
		}
	}
}

// Write writes the objects as documents of one file.
func (c *Config) Write(w io.Writer) error {
	comment := fmt.Sprintf("# To remove these objects: wasmctl uninstall --name %s -n %s\n", c.Name, c.Namespace)
	if c.serves() {
		comment += "# After kubectl delete -f, Reconcilers and their CRDs wait for a process that is gone. The same command ends that.\n"
	}
	for _, object := range c.Objects() {
		b, err := YAML(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s%s", comment, b); err != nil {
			return err
		}
		comment = ""
	}
	return nil
}

// WriteBase writes a kustomize base: a file for each object.
func WriteBase(dir string, objects []any) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	written := map[string]bool{}
	var base bytes.Buffer
	base.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, object := range objects {
		b, err := YAML(object)
		if err != nil {
			return err
		}
		var head struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal(b, &head); err != nil {
			return err
		}
		name := strings.ToLower(head.Kind + "-" + strings.ReplaceAll(head.Metadata.Name, ":", "-"))
		if written[name] { // Roles with the same name in several namespaces
			name += "-" + head.Metadata.Namespace
		}
		written[name] = true
		name += ".yaml"
		if err := atomicfile.Replace(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&base, "- %s\n", name)
	}
	return atomicfile.Replace(filepath.Join(dir, "kustomization.yaml"), base.Bytes(), 0o644)
}
