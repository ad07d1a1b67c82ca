// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// selects reports whether a webhook selects a request, by its rules and the namespaces of the routes, as the API server does.
func (r *Routes) selects(w *abi.Webhook, a *abi.Admission) bool {
	if w == nil {
		return false
	}
	if r.Namespaces != nil {
		namespace := a.Key.Namespace
		if a.Target.Group == "" && a.Target.Version == "v1" && a.Target.Resource == "namespaces" { // it is selected by its own name, which the request may lack if it is created
			namespace = a.Key.Name
			if namespace == "" {
				namespace = nameIn(a.Object)
			}
		}
		if namespace == "" || !slices.Contains(r.Namespaces, namespace) {
			return false
		}
	}
	return w.Selects(a)
}
