// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/failure"
)

// Get implements Reader.
func (h *host) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	gvk, err := h.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	if h.cached(obj, gvk) {
		if h.byKind != nil {
			return h.byKind.GetOfKind(ctx, gvk, key, obj, opts...)
		}
		return h.cache.Get(ctx, key, obj, opts...)
	}
	c, err := h.caller(ctx)
	if err != nil {
		return err
	}
	o := (&GetOptions{}).ApplyOptions(opts)
	got, err := c.Get(codec.RefTo(gvk, key.Namespace, key.Name), wasmctl.GetOptions{ResourceVersion: o.AsGetOptions().ResourceVersion})
	if err != nil {
		return failure.NoMatch(failure.FromHost(err), gvk)
	}
	return into(got, obj, gvk)
}

// List implements Reader.
func (h *host) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	gvk, err := codec.KindOfItems(list, h.scheme)
	if err != nil {
		return err
	}
	if h.cached(list, gvk) {
		return h.cache.List(ctx, list, opts...)
	}
	c, err := h.caller(ctx)
	if err != nil {
		return err
	}
	o := (&ListOptions{}).ApplyOptions(opts)
	if o.selectsNothing() {
		_, err := codec.NewList(list, gvk)
		return err
	}
	raw := o.AsListOptions()
	ask := wasmctl.ListOptions{
		LabelSelector: raw.LabelSelector, FieldSelector: raw.FieldSelector, Limit: raw.Limit, Continue: raw.Continue,
		ResourceVersion: raw.ResourceVersion, ResourceVersionMatch: string(raw.ResourceVersionMatch),
	}
	page, err := c.List(codec.RefTo(gvk, o.Namespace, ""), ask)
	if err != nil {
		return failure.NoMatch(failure.FromHost(err), gvk)
	}
	return codec.DecodeList(page, list, gvk)
}

// into decodes the answer of the API server. As with the real client, a typed
// object then has no kind.
func into(got wasmctl.Object, obj Object, gvk schema.GroupVersionKind) error {
	if err := codec.Decode(got, obj); err != nil {
		return err
	}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		if kind := obj.GetObjectKind(); kind.GroupVersionKind().Empty() {
			kind.SetGroupVersionKind(gvk)
		}
	default:
		codec.SetKind(obj, "", "")
	}
	return nil
}
