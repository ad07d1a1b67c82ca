// SPDX-License-Identifier: Apache-2.0

package hostcache

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
)

// Bounds restrict the objects of a cache.
type Bounds struct {
	options cache.Options
	byKind  map[schema.GroupVersionKind]cache.ByObject
}

// Bound restricts one kind. Without namespaces, it covers all of them.
type Bound struct {
	Namespaces []string
	Label      labels.Selector
	Field      fields.Selector
}

// NewBounds returns the bounds of a cache.
func NewBounds(scheme *runtime.Scheme, o cache.Options) (Bounds, error) {
	if o.DefaultNamespaces == nil && len(o.Namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.Namespaces {
			o.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	b := Bounds{options: o, byKind: map[schema.GroupVersionKind]cache.ByObject{}}
	for obj, limits := range o.ByObject {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return b, err
		}
		b.byKind[gvk] = limits
	}
	return b, nil
}

// Of returns the restriction of a kind.
func (b Bounds) Of(gvk schema.GroupVersionKind) Bound {
	by := b.byKind[gvk]
	if by.Namespaces == nil {
		by.Namespaces = b.options.DefaultNamespaces
	}
	if by.Label == nil {
		by.Label = b.options.DefaultLabelSelector
	}
	if by.Field == nil {
		by.Field = b.options.DefaultFieldSelector
	}
	out := Bound{Label: by.Label, Field: by.Field}
	if _, all := by.Namespaces[cache.AllNamespaces]; !all {
		out.Namespaces = slices.Sorted(maps.Keys(by.Namespaces))
	}
	return out
}

// has reports whether an object is in the namespaces and matches the labels.
func (b Bound) has(obj client.Object) bool {
	ns := obj.GetNamespace()
	return (ns == "" || len(b.Namespaces) == 0 || slices.Contains(b.Namespaces, ns)) &&
		(b.Label == nil || b.Label.Matches(labels.Set(obj.GetLabels())))
}

// bounded reads from the API server, within the restrictions of a cache.
type bounded struct {
	api    client.Client
	bounds Bounds
}

// Get implements client.Reader. It does not compare fields.
func (b bounded) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, err := b.api.GroupVersionKindFor(obj)
	if err == nil {
		err = b.api.Get(ctx, key, obj, opts...)
	}
	if err == nil && !b.bounds.Of(gvk).has(obj) {
		return notFound(gvk, key)
	}
	return err
}

// List implements client.Reader.
func (b bounded) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := codec.KindOfItems(list, b.api.Scheme())
	if err != nil {
		return err
	}
	bound := b.bounds.Of(gvk)
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.Namespace == "" && len(bound.Namespaces) == 1 {
		o.Namespace = bound.Namespaces[0]
	}
	if bound.Field != nil && o.FieldSelector != nil {
		o.FieldSelector = fields.AndSelectors(o.FieldSelector, bound.Field)
	} else if bound.Field != nil {
		o.FieldSelector = bound.Field
	}
	if o.LabelSelector == nil {
		o.LabelSelector = bound.Label
	}
	if err := b.api.List(ctx, list, o); err != nil {
		return err
	}
	return codec.Keep(list, func(item runtime.Object) bool {
		obj, ok := item.(client.Object)
		return ok && bound.has(obj)
	})
}
