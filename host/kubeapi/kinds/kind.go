// Package kinds finds the kind that a name means among those that the API server
// has: the names are those that kubectl takes.
package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind of object that the API server has, in one version.
type Kind struct {
	// Group is empty for the core group.
	Group   string
	Version string
	// Kind is the name in CamelCase, Resource the plural that stands in URLs
	// and RBAC rules, Singular its singular.
	Kind, Resource, Singular string
	ShortNames               []string
	Namespaced               bool
	// Verbs are those that the API server serves for it.
	Verbs []string

	// Subresources maps, for example, "scale" to autoscaling/v1 Scale.
	Subresources map[string]schema.GroupVersionKind
}

// GVR returns the kind as a resource, as dynamic clients take it.
func (k Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// GVK returns the kind as it stands in objects.
func (k Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// Name returns the kind without its version, as kubectl and RBAC name it:
// "deployments.apps", or "configmaps" in the core group. It is the form of
// resources in reasons and logs.
func (k Kind) Name() string { return k.GVR().GroupResource().String() }

// String returns the name that means this kind and no other, whatever else the
// server has: "apps/v1/deployments", or "v1/configmaps" in the core group.
func (k Kind) String() string { return k.GVR().GroupVersion().String() + "/" + k.Resource }
