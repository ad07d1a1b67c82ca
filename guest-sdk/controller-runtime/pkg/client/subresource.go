// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
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
	defer s.h.keepKind(body)()
	t, err := s.h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&SubResourceCreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	return s.send(t, body, func(value any) (wasmctl.Object, error) {
		return t.c.Subresource(t.ref(), s.name).Create(value, writeOptions("", o.DryRun, o.FieldManager, o.FieldValidation))
	})
}

// send sends a body, which may be of another kind than the object.
func (s *subresource) send(t target, body Object, call func(value any) (wasmctl.Object, error)) error {
	gvk, err := s.h.GroupVersionKindFor(body)
	if err != nil {
		return err
	}
	return target{t.c, gvk, body}.send("send the "+s.name+" of", call)
}

// Update implements SubResourceWriter.
func (s *subresource) Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error {
	defer s.h.keepKind(obj)()
	t, err := s.h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&SubResourceUpdateOptions{}).ApplyOptions(opts)
	raw := o.AsUpdateOptions()
	write := writeOptions("", raw.DryRun, raw.FieldManager, raw.FieldValidation)
	if o.SubResourceBody == nil {
		write.Subresource = s.name
		return t.send("update the "+s.name+" of", func(body any) (wasmctl.Object, error) { return t.c.Update(body, write) })
	}
	return s.send(t, o.SubResourceBody, func(body any) (wasmctl.Object, error) {
		return t.c.Subresource(t.ref(), s.name).Update(body, write)
	})
}

// Patch implements SubResourceWriter.
func (s *subresource) Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error {
	defer s.h.keepKind(obj)()
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
	c, err := s.h.caller(ctx)
	if err != nil {
		return err
	}
	o := (&SubResourceApplyOptions{}).ApplyOpts(opts)
	named := codec.Plain(unwrap(obj))
	if o.SubResourceBody == nil {
		return applied(obj)(c.Apply(named, applyOptions(s.name, o.AsPatchOptions())))
	}
	ref, err := codec.RefOf(named)
	if err != nil {
		return err
	}
	body := codec.Plain(unwrap(o.SubResourceBody))
	return applied(o.SubResourceBody)(c.Subresource(ref, s.name).Apply(body, applyOptions("", o.AsPatchOptions())))
}
