// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
)

// Labels of the objects of an installation. wasmctl uninstall finds the objects by them.
const (
	LabelName      = "app.kubernetes.io/name" // its value is always wasmctl
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component" // the command that the processes run
	LabelNamespace = "wasmctl.dev/namespace"       // of the Deployment: names are unique in a namespace only
)

// Values of LabelComponent.
const (
	ComponentServe = "serve"
	ComponentRun   = "run"
)

// Mark labels the objects of the installation with this namespace and name, and returns them.
func Mark(objects []any, namespace, name, component string) []any {
	for _, o := range objects {
		if fields, ok := o.(map[string]any); ok {
			o = &unstructured.Unstructured{Object: fields}
		}
		m, err := meta.Accessor(o)
		if err != nil {
			panic("BUG: object: " + err.Error())
		}
		labels := maps.Clone(m.GetLabels()) // several objects may have the same map
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, map[string]string{LabelName: "wasmctl", LabelInstance: name, LabelComponent: component, LabelNamespace: namespace})
		m.SetLabels(labels)
	}
	return objects
}

// Of returns the namespace, the name and the component of the installation that an object belongs to. They are empty if it belongs to none.
// Labels alone do not decide that: copies of an object have them, and a tenant can set them in its own namespace. The object must also have a
// name that Config.Objects gives.
func Of(o metav1.Object) (namespace, name, component string) {
	labels := o.GetLabels()
	namespace, name = labels[LabelNamespace], labels[LabelInstance]
	if labels[LabelName] != "wasmctl" || namespace == "" || name == "" || !nameFits(o, namespace, name) {
		return "", "", ""
	}
	return namespace, name, labels[LabelComponent]
}

// nameFits reports whether an object of an installation can have this namespace and name.
func nameFits(o metav1.Object, namespace, name string) bool {
	switch o.GetNamespace() {
	case "":
		return slices.Contains([]string{namespace, namespace + ":" + name, flowSchemaName(namespace, name), flags.WebhookName(namespace, name)}, o.GetName())
	case namespace:
		return o.GetName() == name || strings.HasPrefix(o.GetName(), name+"-")
	}
	return o.GetName() == name // rights in the namespaces of objects
}

// Unstructured returns the objects for dynamic clients.
func (c *Config) Unstructured() (list []*unstructured.Unstructured, err error) {
	for _, object := range c.Objects() {
		b, err := YAML(object)
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(b, &o.Object); err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}
