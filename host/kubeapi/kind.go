package kubeapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

	// subresources maps, for example, "scale" to autoscaling/v1 Scale.
	subresources map[string]schema.GroupVersionKind
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
func (k Kind) Name() string { return groupResource(k.Group, k.Resource) }

// String returns the name that means this kind and no other, whatever else the
// server has: "apps/v1/deployments", or "v1/configmaps" in the core group.
func (k Kind) String() string {
	if k.Group == "" {
		return k.Version + "/" + k.Resource
	}
	return k.Group + "/" + k.Version + "/" + k.Resource
}

// Watchable reports whether objects of the kind can be listed and watched. Some
// kinds cannot: reviews and bindings are only created.
func (k Kind) Watchable() bool {
	return slices.Contains(k.Verbs, VerbList) && slices.Contains(k.Verbs, VerbWatch)
}
