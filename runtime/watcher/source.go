package watcher

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
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
	// Metadata watches the objects without their content: the API server sends
	// and the store keeps only metadata, whole, with apiVersion and Kind.
	Metadata bool
	// Shard is the part of the objects that is watched. An API server that cannot
	// select by it sends all of them; the others are dropped.
	Shard slots.Range
	// Kind is the kind of the resource. It is needed with Metadata, where the API
	// server does not say it, and does not count otherwise.
	Kind string
}

// normal returns the source with what does not count taken out.
func (s Source) normal() Source {
	if !s.Metadata {
		s.Kind = ""
	}
	return s
}

// options returns what of the objects is kept.
func (s Source) options() reflector.Options {
	opts := reflector.Options{ManagedFields: s.ManagedFields, Metadata: s.Metadata}
	if s.Metadata && s.Kind != "" {
		opts.APIVersion, opts.Kind = s.Resource.GroupVersion().String(), s.Kind
	}
	return opts
}

// Name returns the resource as kubectl writes it: "configmaps",
// "deployments.apps".
func (s Source) Name() string { return s.Resource.GroupResource().String() }

// String returns the source for a log line: "deployments.apps in shop (app=web)",
// "pods (metadata)".
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
	if s.Metadata {
		b.WriteString(" (metadata)")
	}
	if s.Shard.N > 0 {
		fmt.Fprintf(&b, " (shard %d of %d)", s.Shard.Slot, s.Shard.N)
	}
	return b.String()
}

// secret reports whether the objects are Secrets. A sample of them outlives them where
// they are compressed.
func (s Source) secret() bool { return s.Resource.Group == "" && s.Resource.Resource == "secrets" }

// has reports whether an object is in the part that is watched.
func (s Source) has(o *reflector.Object) bool { return s.Shard.Has(o.UID(), o.Ref().Namespace) }
