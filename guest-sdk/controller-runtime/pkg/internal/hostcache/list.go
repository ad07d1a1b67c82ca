// SPDX-License-Identifier: Apache-2.0

package hostcache

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/failure"
)

func isMetadata(obj runtime.Object) bool {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

// List implements client.Reader.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := codec.KindOfItems(list, c.scheme)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	match, err := c.matcher(gvk, o)
	if err != nil {
		return err
	}
	if !c.has(list, gvk) {
		return c.fromAPI(ctx, list, gvk, o, match)
	}
	if o.Continue != "" {
		return errContinue
	}
	host, err := current(ctx)
	if err != nil {
		return err
	}
	items, err := codec.NewList(list, gvk)
	if err != nil || selectsNothing(o.LabelSelector) || match != nil && match.nothing {
		return err
	}
	ask := wasmctl.CacheListOptions{}
	if o.LabelSelector != nil {
		ask.LabelSelector = o.LabelSelector.String()
	}
	form := formOf(list)
	match.ask(&ask, form)
	for found, err := range host.All(codec.RefTo(gvk, o.Namespace, ""), ask) {
		if pending(err, gvk) {
			return c.fromAPI(ctx, list, gvk, o, match)
		}
		if err != nil {
			return failure.FromHost(err)
		}
		if err := add(items, found, match, form); err != nil {
			return err
		}
		if o.Limit > 0 && int64(items.Len()) >= o.Limit {
			break
		}
	}
	return nil
}

// add appends an object if the indexes match.
func add(items *codec.List, found wasmctl.Object, match *matcher, form int) error {
	obj, err := items.Append(found.Value)
	if err != nil {
		return err
	}
	tell := func(x *index, values []string) { x.byForm[form].Tell(found, values) }
	if o, ok := obj.(client.Object); !ok || !match.matches(o, tell) {
		items.Drop()
	}
	return nil
}

// selectsNothing reports whether a selector matches no object. The text of the
// selector does not show that.
func selectsNothing(s labels.Selector) bool {
	if s == nil {
		return false
	}
	_, selectable := s.Requirements()
	return !selectable
}

// matcher returns the matcher of the field selector for fields with an index,
// or nil if there are none. For a kind that is not watched, the API server
// evaluates fields without an index.
func (c *Cache) matcher(gvk schema.GroupVersionKind, o *client.ListOptions) (*matcher, error) {
	if o.FieldSelector == nil {
		return nil, nil
	}
	m := &matcher{nothing: !o.FieldSelector.Empty() && len(o.FieldSelector.Requirements()) == 0}
	for _, r := range o.FieldSelector.Requirements() {
		x := c.indexer(gvk, r.Field)
		if x == nil {
			if c.watches(gvk) {
				return nil, fmt.Errorf("list %s: there is no index of the field %q; register it by mgr.GetFieldIndexer().IndexField", gvk.Kind, r.Field)
			}
			return nil, nil
		}
		if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil, fmt.Errorf("list %s: field %q: an index finds equal values only, not %q", gvk.Kind, r.Field, r.Operator)
		}
		m.wants = append(m.wants, want{x, r.Value})
	}
	return m, nil
}

func (c *Cache) watches(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.watched[gvk]
	return ok
}

// fromAPI lists a kind that is not watched. Fields with an index are evaluated
// here, because the API server does not know them.
func (c *Cache) fromAPI(ctx context.Context, list client.ObjectList, gvk schema.GroupVersionKind, o *client.ListOptions, match *matcher) error {
	plain := *o
	if match != nil {
		plain.FieldSelector, plain.Limit = nil, 0
	}
	if err := c.api.List(ctx, list, &plain); err != nil {
		return err
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return codec.Keep(list, func(obj runtime.Object) bool {
		codec.SetKind(obj, apiVersion, kind)
		o, ok := obj.(client.Object)
		return match == nil || ok && match.matches(o, func(*index, []string) {})
	})
}
