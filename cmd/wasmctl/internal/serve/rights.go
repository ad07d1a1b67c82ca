package serve

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// Rights are what a process needs itself to serve the Reconcilers of namespaces, or
// without any all Reconcilers and ClusterReconcilers: the rest is done as their
// service accounts. If constrained, grant.Impersonation says what may be done so.
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
			c.Verbs = []string{kubeapi.VerbGet, kubeapi.VerbList, kubeapi.VerbWatch, kubeapi.VerbPatch} // patch: the finalizer
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

// ModuleReads are what is read as a service account before its module runs: what a
// Reconciler names in its namespace.
func ModuleReads(namespace string) []abi.Capability {
	var reads []abi.Capability
	for _, resource := range []string{"configmaps", "secrets"} {
		reads = append(reads, abi.Capability{Resource: resource, Verbs: []string{kubeapi.VerbGet}, Namespaces: []string{namespace}})
	}
	return reads
}
