// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"

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
		rights = append(append(rights, grant.EventRules(ns)...), namespaceRule(ns), accountRule(ns))
		if !constrained {
			rights = append(append(rights, grant.ImpersonateRules(ns)...), releaseRule("*", "*", ns))
		}
	}
	if constrained {
		rights = append(rights, grant.ReviewRules()...)
	}
	return rights
}

// namespaceRule is the right to see whether a namespace, or any if it is "", is being deleted.
func namespaceRule(ns string) abi.Capability {
	c := abi.Capability{Resource: "namespaces", Verbs: []string{kubeapi.VerbGet}}
	if ns != "" {
		c.Namespaces, c.Names = []string{ns}, []string{ns}
	}
	return c
}

// accountRule is the right to see whether a service account exists, in this namespace or in any if it is "".
func accountRule(ns string) abi.Capability {
	c := abi.Capability{Resource: "serviceaccounts", Verbs: []string{kubeapi.VerbGet}}
	if ns != "" {
		c.Namespaces = []string{ns}
	}
	return c
}

// releaseRule is the right to take the finalizer of a module off objects whose namespace is being deleted:
// the rights of the service account may be gone before the objects are.
func releaseRule(group, resource, ns string) abi.Capability {
	c := abi.Capability{Group: group, Resource: resource, Verbs: []string{kubeapi.VerbGet, kubeapi.VerbList, kubeapi.VerbPatch}}
	if ns != "" {
		c.Namespaces = []string{ns}
	}
	return c
}

// ReleaseRules returns the rights of the process itself to release the objects of a module with these rights,
// if it has a finalizer. They are for all namespaces, because a Role goes with its namespace. Without
// constrained impersonation, Rights has them for all kinds.
func ReleaseRules(module []abi.Capability) (rules []abi.Capability) {
	for _, c := range module {
		if slices.Equal(c.Fields, []string{"metadata.finalizers"}) {
			rules = append(rules, releaseRule(c.Group, c.Resource, ""))
		}
	}
	return rules
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
