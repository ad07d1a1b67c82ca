// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// selects reports whether a webhook selects a request, by its rules and the namespaces of the routes, as the API server does.
func selects(r *Routes, w *abi.Webhook, a *abi.Admission) bool {
	isNamespace := a.Target.Group == "" && a.Target.Version == "v1" && a.Target.Resource == "namespaces"
	if r.Namespaces != nil {
		namespace := a.Key.Namespace
		if isNamespace { // it is selected by its own name, which the request may lack if it is created
			namespace = a.Key.Name
			if namespace == "" {
				namespace = nameIn(a.Object)
			}
		}
		if namespace == "" || !slices.Contains(r.Namespaces, namespace) {
			return false
		}
	}
	namespaced := a.Key.Namespace != "" && !isNamespace
	return slices.ContainsFunc(w.Rules, func(rule abi.WebhookRule) bool {
		return (rule.Scope != "Namespaced" || namespaced) && (rule.Scope != "Cluster" || !namespaced) &&
			(slices.Contains(rule.Operations, a.Operation) || slices.Contains(rule.Operations, "*")) &&
			has(rule.Groups, a.Target.Group) && has(rule.Versions, a.Target.Version) && hasResource(rule.Resources, a.Target.Resource, a.Target.Subresource)
	})
}

func has(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// hasResource reports whether a list of resources, such as "pods", "pods/status", "pods/*", "*/scale" or "*", has a resource. "*" has no
// subresources, but "*/*" has everything.
func hasResource(list []string, resource, subresource string) bool {
	candidates := []string{resource, "*"}
	if subresource != "" {
		candidates = []string{resource + "/" + subresource, "*/" + subresource}
	}
	candidates = append(candidates, resource+"/*", "*/*")
	return slices.ContainsFunc(candidates, func(c string) bool { return slices.Contains(list, c) })
}
