package client

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/failure"
)

// Status implements Client.
func (h *host) Status() SubResourceWriter { return h.SubResource("status") }

// SubResource implements Client.
func (h *host) SubResource(name string) SubResourceClient { return &subresource{h, name} }

type subresource struct {
	h    *host
	name string
}

// Get implements SubResourceReader.
func (s *subresource) Get(ctx context.Context, obj, body Object, opts ...SubResourceGetOption) error {
	t, err := s.h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&SubResourceGetOptions{}).ApplyOptions(opts).AsGetOptions()
	got, err := t.c.Get(t.ref(), wasmctl.GetOptions{Subresource: s.name, ResourceVersion: o.ResourceVersion})
	return target{t.c, t.gvk, body}.take(got, err)
}

// Create implements SubResourceWriter.
func (s *subresource) Create(ctx context.Context, obj, body Object, opts ...SubResourceCreateOption) error {
	t, err := s.h.aim(ctx, obj)
	if err != nil {
		return err
	}
	sent, value, err := s.encode(body)
	if err != nil {
		return err
	}
	o := (&SubResourceCreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	got, err := t.c.Subresource(t.ref(), s.name).Create(value, writeOptions("", o.DryRun, o.FieldManager, o.FieldValidation))
	return target{t.c, sent, body}.take(got, err)
}

// encode returns a body with its own kind.
func (s *subresource) encode(body Object) (schema.GroupVersionKind, any, error) {
	gvk, err := s.h.GroupVersionKindFor(body)
	if err != nil {
		return gvk, nil, err
	}
	value, err := codec.Encode(body, gvk)
	return gvk, value, err
}

// Update implements SubResourceWriter.
func (s *subresource) Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error {
	t, err := s.h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&SubResourceUpdateOptions{}).ApplyOptions(opts)
	raw := o.AsUpdateOptions()
	write := writeOptions("", raw.DryRun, raw.FieldManager, raw.FieldValidation)
	if o.SubResourceBody == nil {
		body, err := t.whole("update the " + s.name + " of")
		if err != nil {
			return err
		}
		write.Subresource = s.name
		return t.take(t.c.Update(body, write))
	}
	sent, body, err := s.encode(o.SubResourceBody)
	if err != nil {
		return err
	}
	got, err := t.c.Subresource(t.ref(), s.name).Update(body, write)
	return target{t.c, sent, o.SubResourceBody}.take(got, err)
}

// Patch implements SubResourceWriter.
func (s *subresource) Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error {
	t, err := s.h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&SubResourcePatchOptions{}).ApplyOptions(opts)
	body := obj
	if o.SubResourceBody != nil {
		body = o.SubResourceBody
	}
	return t.patch(s.name, body, patch, o.AsPatchOptions())
}

// Apply implements SubResourceWriter.
func (s *subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error {
	c, err := caller(ctx)
	if err != nil {
		return err
	}
	o := (&SubResourceApplyOptions{}).ApplyOpts(opts)
	named, err := codec.Map(unwrap(obj))
	if err != nil {
		return err
	}
	if o.SubResourceBody == nil {
		got, err := c.Apply(named, applyOptions(s.name, o.AsPatchOptions()))
		if err != nil {
			return failure.FromHost(err)
		}
		return takeApplied(got, obj)
	}
	body, err := codec.Map(unwrap(o.SubResourceBody))
	if err != nil {
		return err
	}
	ref, err := refOfMap(named)
	if err != nil {
		return err
	}
	got, err := c.Subresource(ref, s.name).Apply(body, applyOptions("", o.AsPatchOptions()))
	if err != nil {
		return failure.FromHost(err)
	}
	return takeApplied(got, o.SubResourceBody)
}

// refOfMap names the object of an apply configuration.
func refOfMap(m map[string]any) (wasmctl.ObjectRef, error) {
	md, _ := m["metadata"].(map[string]any)
	var ref wasmctl.ObjectRef
	for to, v := range map[*string]any{
		&ref.APIVersion: m["apiVersion"], &ref.Kind: m["kind"], &ref.Namespace: md["namespace"], &ref.Name: md["name"],
	} {
		*to, _ = v.(string)
	}
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		return ref, fmt.Errorf("apply %s: the apply configuration needs apiVersion, kind and name", ref)
	}
	return ref, nil
}
