// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Source describes a watch. Sources are compared with ==: users of equal sources share a watch (rule 15).
type Source struct {
	Resource schema.GroupVersionResource
	// Namespace restricts the watch to one namespace; "" watches all namespaces, or a cluster-scoped resource.
	Namespace string
	// LabelSelector and FieldSelector use the API server's syntax; "" selects everything.
	LabelSelector, FieldSelector string
	// ManagedFields keeps metadata.managedFields of the objects.
	ManagedFields bool
	// Metadata watches only the metadata of the objects: the API server sends, and the store holds, the complete metadata with apiVersion
	// and Kind.
	Metadata bool
	// Shard is the watched part of the objects. If the API server does not support shard selectors, it sends all objects, and the others
	// are discarded.
	Shard slots.Range
	// Kind is the kind of the resource. It is required with Metadata, because the API server then does not send it, and ignored otherwise.
	Kind string
}

// normal returns the source without fields that have no effect.
func (s Source) normal() Source {
	if !s.Metadata {
		s.Kind = ""
	}
	return s
}

// kind returns the source without selectors: sources that differ only in these can have the same objects.
func (s Source) kind() Source {
	s.LabelSelector, s.FieldSelector = "", ""
	return s
}

// options returns the parts of the objects to store.
func (s Source) options() reflector.Options {
	opts := reflector.Options{ManagedFields: s.ManagedFields, Metadata: s.Metadata, Opaque: opaqueFields(s.Resource)}
	if s.Metadata && s.Kind != "" {
		opts.APIVersion, opts.Kind = s.Resource.GroupVersion().String(), s.Kind
	}
	return opts
}

// Name returns the resource as kubectl writes it, such as "configmaps" or "deployments.apps".
func (s Source) Name() string { return s.Resource.GroupResource().String() }

// String returns the source for a log line, such as "deployments.apps in shop (app=web)" or "pods (metadata)".
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

// secret reports whether the objects are Secrets. They are not compressed, because the sample in a dictionary can outlive an object.
func (s Source) secret() bool { return s.Resource.Group == "" && s.Resource.Resource == "secrets" }

// has reports whether an object is in the watched part.
func (s Source) has(o *reflector.Object) bool { return s.Shard.Has(o.UID(), o.Ref().Namespace) }
