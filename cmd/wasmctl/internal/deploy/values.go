// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// use is the way in which a chart's value gets to its place.
type use string

const (
	// replaces sets the field to the value.
	replaces use = "replaces"
	// fills sets the field to the value unless the value is empty.
	fills use = "fills"
	// extends adds the items of the value to those of a list or map.
	extends use = "extends"
	// arguments adds an argument --registry-allow for each item of the value.
	arguments use = "arguments"
	// decides is for values that only conditions read.
	decides use = "decides"
)

// value is one value of the chart.
type value struct {
	// name is the name of the value. A value a.b is the field b of the object a.
	name, about string
	schema      schema
	initial     any
	use         use
	// places are the fields that depend on the value, each as KIND PATH.
	places []string
}

// schema is a JSON schema.
type schema map[string]any

// The schemas of values. A typo in a name of the chart is an error. The content of Kubernetes' own
// types is up to the API server, which may be newer than this chart.
var (
	text     = schema{"type": "string"}
	flag     = schema{"type": "boolean"}
	number   = schema{"type": "integer", "minimum": 0}
	object   = schema{"type": "object"}
	objects  = schema{"type": "array", "items": object}
	texts    = schema{"type": "array", "items": text}
	textMap  = schema{"type": "object", "additionalProperties": text}
	quantity = schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "number"}}}
	needs    = schema{"type": "object", "additionalProperties": false, "properties": schema{"limits": quantity, "requests": quantity, "claims": objects}}
)

// scalar reports whether values of this schema fit on the line of their field.
func (s schema) scalar() bool { return s["type"] != "object" && s["type"] != "array" }

// values returns the values of the chart, with the defaults of the Config.
func (c *Config) values() []value {
	const deployment, pod, container = "Deployment spec.", "Deployment spec.template.spec.", "Deployment spec.template.spec.containers.0."
	none, no := []any{}, map[string]any{}
	of := c.deployment().Spec
	return []value{
		{"image", "The image of wasmctl", schema{"type": "string", "minLength": 1}, c.Image, replaces, []string{container + "image"}},
		{"imagePullPolicy", "When the image is pulled, if not by Kubernetes' default", text, "", fills, []string{container + "imagePullPolicy"}},
		{"imagePullSecrets", "Secrets with credentials for the image: - name: NAME", objects, none, fills, []string{pod + "imagePullSecrets"}},
		{"replicas", "The number of pods", number, c.Replicas, replaces, []string{deployment + "replicas", "HorizontalPodAutoscaler spec.minReplicas"}},
		{"resources", "The resources of the container; modules run within its limits", needs, of.Template.Spec.Containers[0].Resources, replaces, []string{container + "resources"}},
		{"registryAllow", "The modules that Reconcilers can name: HOST[:PORT][/REPOSITORY], with globs in the host; empty means all", texts, append([]string{}, c.RegistryAllow...), arguments, []string{container + "args"}},
		{"args", "Further arguments of wasmctl serve", texts, append([]string{}, c.Args...), extends, []string{container + "args"}},
		{"env", "Further environment variables", objects, none, extends, []string{container + "env"}},
		{"envFrom", "Sources of further environment variables", objects, none, fills, []string{container + "envFrom"}},
		{"volumes", "Further volumes of the pod", objects, none, extends, []string{pod + "volumes"}},
		{"volumeMounts", "Further volume mounts of the container", objects, none, extends, []string{container + "volumeMounts"}},
		{"initContainers", "Init containers of the pod", objects, none, fills, []string{pod + "initContainers"}},
		{"extraContainers", "Further containers of the pod", objects, none, extends, []string{pod + "containers"}},
		{"nodeSelector", "Labels of the nodes to run on", textMap, no, fills, []string{pod + "nodeSelector"}},
		{"tolerations", "Taints of nodes to tolerate", objects, none, fills, []string{pod + "tolerations"}},
		{"affinity", "Affinity of the pod", object, no, fills, []string{pod + "affinity"}},
		{"topologySpreadConstraints", "Constraints for the spread of the pods", objects, none, fills, []string{pod + "topologySpreadConstraints"}},
		{"priorityClassName", "The priority class of the pod", text, "", fills, []string{pod + "priorityClassName"}},
		{"terminationGracePeriodSeconds", "Time for a pod to end; increase it together with --drain-timeout", number, of.Template.Spec.TerminationGracePeriodSeconds, replaces, []string{pod + "terminationGracePeriodSeconds"}},
		{"podSecurityContext", "The security context of the pod; null removes a default", object, of.Template.Spec.SecurityContext, replaces, []string{pod + "securityContext"}},
		{"securityContext", "The security context of the container", object, of.Template.Spec.Containers[0].SecurityContext, replaces, []string{container + "securityContext"}},
		{"podLabels", "Further labels of the pod", textMap, no, extends, []string{deployment + "template.metadata.labels"}},
		{"podAnnotations", "Further annotations of the pod", textMap, no, extends, []string{deployment + "template.metadata.annotations"}},
		{"deploymentLabels", "Further labels of the Deployment", textMap, no, extends, []string{"Deployment metadata.labels"}},
		{"deploymentAnnotations", "Annotations of the Deployment", textMap, no, fills, []string{"Deployment metadata.annotations"}},
		{"serviceAccountAnnotations", "Annotations of the ServiceAccount", textMap, no, fills, []string{"ServiceAccount metadata.annotations"}},
		{"crds.enabled", "Install and upgrade the CRDs; an uninstall leaves them", flag, true, decides, nil},
		{"networkPolicy.enabled", "Permit only incoming connections to metrics, probes and webhooks, and outgoing ones to the usual ports of DNS, API servers, registries and collectors", flag, true, decides, nil},
		{"networkPolicy.egress", "Further rules for outgoing connections, such as - ports: [{port: 8444}]", objects, none, extends, []string{"NetworkPolicy spec.egress"}},
		{"webhooks.enabled", "Serve the webhooks of modules, and write their configurations; the pods then share the objects of each Reconciler", flag, c.Webhooks, decides, nil},
		{"podDisruptionBudget.enabled", "Protect several replicas from being evicted at once", flag, true, decides, nil},
		{"podMonitor.enabled", "Let the Prometheus operator scrape the pods", flag, slices.Contains(c.Monitors, PodMonitor), decides, nil},
		{"podMonitor.labels", "Further labels of the PodMonitor", textMap, no, extends, []string{"PodMonitor metadata.labels"}},
		{"podMonitor.endpoint", "Further fields of its endpoint, such as interval", object, no, extends, []string{"PodMonitor spec.podMetricsEndpoints.0"}},
		{"serviceMonitor.enabled", "Let the Prometheus operator scrape the Service, instead of the PodMonitor", flag, false, decides, nil},
		{"serviceMonitor.labels", "Further labels of the ServiceMonitor", textMap, no, extends, []string{"ServiceMonitor metadata.labels"}},
		{"serviceMonitor.endpoint", "Further fields of its endpoint, such as interval", object, no, extends, []string{"ServiceMonitor spec.endpoints.0"}},
	}
}

// valuesFile returns values.yaml, with a comment for each value.
func valuesFile(values []value) ([]byte, error) {
	var b bytes.Buffer
	group := ""
	for _, v := range values {
		parent, name, nested := strings.Cut(v.name, ".")
		indent := ""
		if !nested {
			name = v.name
		} else if indent = "  "; parent != group {
			fmt.Fprintf(&b, "%s:\n", parent)
		}
		group = parent
		content, err := yaml.Marshal(map[string]any{name: v.initial})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s# %s.\n", indent, v.about)
		for line := range strings.Lines(string(content)) {
			b.WriteString(indent + line)
		}
	}
	return b.Bytes(), nil
}

// schemaOf returns the schema of all values. Helm adds global to the values of a chart that another
// chart depends on, and such a chart may put its condition into enabled.
func schemaOf(values []value) schema {
	top := schema{"global": object, "enabled": flag}
	for _, v := range values {
		parent, name, nested := strings.Cut(v.name, ".")
		if !nested {
			top[v.name] = v.schema
			continue
		}
		group, ok := top[parent].(schema)
		if !ok {
			group = schema{"type": "object", "additionalProperties": false, "properties": schema{}}
			top[parent] = group
		}
		group["properties"].(schema)[name] = v.schema //nolint:forcetypeassert // see above
	}
	return schema{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false, "properties": top}
}
