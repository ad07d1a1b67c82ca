// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// defaults is a client that adds options to each write of another client:
// before the options of the call, which then override them, or after, so that
// they override the call.
type defaults struct {
	Client

	create []CreateOption
	update []UpdateOption
	patch  []PatchOption
	apply  []ApplyOption
	del    []DeleteOption
	delAll []DeleteAllOfOption

	subCreate []SubResourceCreateOption
	subUpdate []SubResourceUpdateOption
	subPatch  []SubResourcePatchOption
	subApply  []SubResourceApplyOption

	win bool
}

// WithFieldOwner returns a client whose writes have that field manager, unless
// the call names another one.
func WithFieldOwner(c Client, fieldOwner string) Client {
	o := FieldOwner(fieldOwner)
	return &defaults{
		Client: c,
		create: []CreateOption{o}, update: []UpdateOption{o}, patch: []PatchOption{o}, apply: []ApplyOption{o},
		subCreate: []SubResourceCreateOption{o}, subUpdate: []SubResourceUpdateOption{o},
		subPatch: []SubResourcePatchOption{o}, subApply: []SubResourceApplyOption{o},
	}
}

// WithFieldValidation returns a client whose writes have that field validation,
// unless the call names another one.
func WithFieldValidation(c Client, validation FieldValidation) Client {
	return &defaults{
		Client: c,
		create: []CreateOption{validation}, update: []UpdateOption{validation}, patch: []PatchOption{validation},
		subCreate: []SubResourceCreateOption{validation}, subUpdate: []SubResourceUpdateOption{validation},
		subPatch: []SubResourcePatchOption{validation},
	}
}

// NewDryRunClient returns a client whose writes store nothing.
func NewDryRunClient(c Client) Client {
	o := DryRunAll
	return &defaults{
		Client: c, win: true,
		create: []CreateOption{o}, update: []UpdateOption{o}, patch: []PatchOption{o}, apply: []ApplyOption{o},
		del: []DeleteOption{o}, delAll: []DeleteAllOfOption{o},
		subCreate: []SubResourceCreateOption{o}, subUpdate: []SubResourceUpdateOption{o},
		subPatch: []SubResourcePatchOption{o}, subApply: []SubResourceApplyOption{o},
	}
}

// joined adds options before or after those of a call.
func joined[T any](d *defaults, add, opts []T) []T {
	if d.win {
		add, opts = opts, add
	}
	return append(append(make([]T, 0, len(add)+len(opts)), add...), opts...)
}

// Create implements Writer.
func (d *defaults) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	return d.Client.Create(ctx, obj, joined(d, d.create, opts)...)
}

// Update implements Writer.
func (d *defaults) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	return d.Client.Update(ctx, obj, joined(d, d.update, opts)...)
}

// Patch implements Writer.
func (d *defaults) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	return d.Client.Patch(ctx, obj, patch, joined(d, d.patch, opts)...)
}

// Apply implements Writer.
func (d *defaults) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	return d.Client.Apply(ctx, obj, joined(d, d.apply, opts)...)
}

// Delete implements Writer.
func (d *defaults) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	return d.Client.Delete(ctx, obj, joined(d, d.del, opts)...)
}

// DeleteAllOf implements Writer.
func (d *defaults) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	return d.Client.DeleteAllOf(ctx, obj, joined(d, d.delAll, opts)...)
}

// Status implements Client.
func (d *defaults) Status() SubResourceWriter { return d.SubResource("status") }

// SubResource implements Client.
func (d *defaults) SubResource(name string) SubResourceClient {
	return &subDefaults{d.Client.SubResource(name), d}
}

// subDefaults is like defaults, for a subresource.
type subDefaults struct {
	SubResourceClient
	d *defaults
}

// Create implements SubResourceWriter.
func (s *subDefaults) Create(ctx context.Context, obj, body Object, opts ...SubResourceCreateOption) error {
	return s.SubResourceClient.Create(ctx, obj, body, joined(s.d, s.d.subCreate, opts)...)
}

// Update implements SubResourceWriter.
func (s *subDefaults) Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error {
	return s.SubResourceClient.Update(ctx, obj, joined(s.d, s.d.subUpdate, opts)...)
}

// Patch implements SubResourceWriter.
func (s *subDefaults) Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error {
	return s.SubResourceClient.Patch(ctx, obj, patch, joined(s.d, s.d.subPatch, opts)...)
}

// Apply implements SubResourceWriter.
func (s *subDefaults) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error {
	return s.SubResourceClient.Apply(ctx, obj, joined(s.d, s.d.subApply, opts)...)
}
