// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// Rights returns the rights that the process itself needs to serve the Reconcilers of these namespaces.
// If namespaces is empty, they are for all Reconcilers and ClusterReconcilers. Other requests are sent
// as their service accounts. If constrained is set, grant.Impersonation returns the rights for that.
func Rights(namespaces []string, constrained bool) []abi.Capability {
	kinds := []string{v1alpha1.KindNamespaced, v1alpha1.KindCluster}
	if len(namespaces) > 0 {
		kinds = kinds[:1]
	}
	var rights []abi.Capability
	for _, ns := range kubeapi.OrAny(namespaces) {
		for _, kind := range kinds {
			c := abi.Capability{Group: v1alpha1.Group, Resource: v1alpha1.GVR(kind).Resource}
			if ns != "" {
				c.Namespaces = []string{ns}
			}
			status := c
			c.Verbs = []string{kubeapi.VerbGet, kubeapi.VerbList, kubeapi.VerbWatch, kubeapi.VerbPatch} // patch is for the finalizer
			status.Subresources, status.Verbs = []string{"status"}, []string{kubeapi.VerbPatch}
			rights = append(rights, c, status)
		}
		rights = append(rights, grant.EventRules(ns)...)
		if !constrained {
			rights = append(rights, grant.ImpersonateRules(ns)...)
		}
	}
	if constrained {
		rights = append(rights, grant.ReviewRules()...)
	}
	return rights
}

// ModuleReads returns the rights to objects that a Reconciler names in its namespace, which are read as
// its service account before the module runs.
func ModuleReads(namespace string) []abi.Capability {
	var reads []abi.Capability
	for _, resource := range []string{"configmaps", "secrets"} {
		reads = append(reads, abi.Capability{Resource: resource, Verbs: []string{kubeapi.VerbGet}, Namespaces: []string{namespace}})
	}
	return reads
}
