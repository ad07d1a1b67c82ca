// SPDX-License-Identifier: Apache-2.0

// Package kinds finds kinds of the API server by the names that kubectl accepts.
package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind of the API server, in one version.
type Kind struct {
	// Group is empty for the core group.
	Group   string
	Version string
	// Kind is the name in CamelCase, Resource is the plural in URLs and RBAC rules, and Singular is
	// its singular.
	Kind, Resource, Singular string
	ShortNames               []string
	Namespaced               bool
	// Verbs are the verbs that the API server supports for it.
	Verbs []string

	// Subresources maps, for example, "scale" to autoscaling/v1 Scale.
	Subresources map[string]schema.GroupVersionKind
}

// GVR returns the kind as a resource, for dynamic clients.
func (k Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// GVK returns the kind as in objects.
func (k Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// Name returns the kind without its version, like kubectl and RBAC: "deployments.apps", or
// "configmaps" in the core group. Reasons and logs use it.
func (k Kind) Name() string { return k.GVR().GroupResource().String() }

// String returns an unambiguous name: "apps/v1/deployments", or "v1/configmaps" in the core group.
func (k Kind) String() string { return k.GVR().GroupVersion().String() + "/" + k.Resource }
