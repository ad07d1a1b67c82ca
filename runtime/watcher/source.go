package watcher

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Source says what is watched. Sources are compared with ==: users of equal
// ones share a watch (rule 15).
type Source struct {
	Resource schema.GroupVersionResource
	// Namespace bounds the watch to one namespace; "" watches all of them, or a
	// cluster-scoped resource.
	Namespace string
	// LabelSelector and FieldSelector are in the API server's own syntax; ""
	// selects everything.
	LabelSelector, FieldSelector string
	// ManagedFields keeps metadata.managedFields of the objects.
	ManagedFields bool
}

// Name returns the resource as kubectl writes it: "configmaps",
// "deployments.apps".
func (s Source) Name() string { return s.Resource.GroupResource().String() }

// String returns the source for a log line: "deployments.apps in shop (app=web)".
func (s Source) String() string {
	var b strings.Builder
	b.WriteString(s.Name())
	if s.Namespace != "" {
		b.WriteString(" in " + s.Namespace)
	}
	for _, selector := range []string{s.LabelSelector, s.FieldSelector} {
		if selector != "" {
			b.WriteString(" (" + selector + ")")
		}
	}
	return b.String()
}
