// SPDX-License-Identifier: Apache-2.0

// Package interceptor intercepts the calls of a client, for tests.
package interceptor

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Funcs are called instead of the client's methods. A nil function does not
// intercept its method. SubResource takes precedence over the functions of
// subresources.
type Funcs struct {
	Get               func(ctx context.Context, client client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	List              func(ctx context.Context, client client.WithWatch, list client.ObjectList, opts ...client.ListOption) error
	Create            func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.CreateOption) error
	Delete            func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.DeleteOption) error
	DeleteAllOf       func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error
	Update            func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.UpdateOption) error
	Patch             func(ctx context.Context, client client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
	Apply             func(ctx context.Context, client client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error
	Watch             func(ctx context.Context, client client.WithWatch, obj client.ObjectList, opts ...client.ListOption) (watch.Interface, error)
	SubResource       func(client client.WithWatch, subResource string) client.SubResourceClient
	SubResourceGet    func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, subResource client.Object, opts ...client.SubResourceGetOption) error
	SubResourceCreate func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, subResource client.Object, opts ...client.SubResourceCreateOption) error
	SubResourceUpdate func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, opts ...client.SubResourceUpdateOption) error
	SubResourcePatch  func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error
	SubResourceApply  func(ctx context.Context, client client.Client, subResourceName string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error
}

// NewClient returns a client that calls the functions. They receive the
// intercepted client.
func NewClient(interceptedClient client.WithWatch, funcs Funcs) client.WithWatch {
	return interceptor{interceptedClient, funcs}
}

type interceptor struct {
	client.WithWatch
	funcs Funcs
}

// Get implements client.Reader.
func (i interceptor) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if i.funcs.Get != nil {
		return i.funcs.Get(ctx, i.WithWatch, key, obj, opts...)
	}
	return i.WithWatch.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (i interceptor) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if i.funcs.List != nil {
		return i.funcs.List(ctx, i.WithWatch, list, opts...)
	}
	return i.WithWatch.List(ctx, list, opts...)
}

// Create implements client.Writer.
func (i interceptor) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if i.funcs.Create != nil {
		return i.funcs.Create(ctx, i.WithWatch, obj, opts...)
	}
	return i.WithWatch.Create(ctx, obj, opts...)
}

// Delete implements client.Writer.
func (i interceptor) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if i.funcs.Delete != nil {
		return i.funcs.Delete(ctx, i.WithWatch, obj, opts...)
	}
	return i.WithWatch.Delete(ctx, obj, opts...)
}

// DeleteAllOf implements client.Writer.
func (i interceptor) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if i.funcs.DeleteAllOf != nil {
		return i.funcs.DeleteAllOf(ctx, i.WithWatch, obj, opts...)
	}
	return i.WithWatch.DeleteAllOf(ctx, obj, opts...)
}

// Update implements client.Writer.
func (i interceptor) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if i.funcs.Update != nil {
		return i.funcs.Update(ctx, i.WithWatch, obj, opts...)
	}
	return i.WithWatch.Update(ctx, obj, opts...)
}

// Patch implements client.Writer.
func (i interceptor) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if i.funcs.Patch != nil {
		return i.funcs.Patch(ctx, i.WithWatch, obj, patch, opts...)
	}
	return i.WithWatch.Patch(ctx, obj, patch, opts...)
}

// Apply implements client.Writer.
func (i interceptor) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if i.funcs.Apply != nil {
		return i.funcs.Apply(ctx, i.WithWatch, obj, opts...)
	}
	return i.WithWatch.Apply(ctx, obj, opts...)
}

// Watch implements client.WithWatch.
func (i interceptor) Watch(ctx context.Context, obj client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if i.funcs.Watch != nil {
		return i.funcs.Watch(ctx, i.WithWatch, obj, opts...)
	}
	return i.WithWatch.Watch(ctx, obj, opts...)
}

// Status implements client.StatusClient.
func (i interceptor) Status() client.SubResourceWriter { return i.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (i interceptor) SubResource(name string) client.SubResourceClient {
	if i.funcs.SubResource != nil {
		return i.funcs.SubResource(i.WithWatch, name)
	}
	return subResource{i, name}
}

// subResource intercepts the client of one subresource.
type subResource struct {
	interceptor
	name string
}

// Get implements client.SubResourceReader.
func (s subResource) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	if s.funcs.SubResourceGet != nil {
		return s.funcs.SubResourceGet(ctx, s.WithWatch, s.name, obj, sub, opts...)
	}
	return s.WithWatch.SubResource(s.name).Get(ctx, obj, sub, opts...)
}

// Create implements client.SubResourceWriter.
func (s subResource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	if s.funcs.SubResourceCreate != nil {
		return s.funcs.SubResourceCreate(ctx, s.WithWatch, s.name, obj, sub, opts...)
	}
	return s.WithWatch.SubResource(s.name).Create(ctx, obj, sub, opts...)
}

// Update implements client.SubResourceWriter.
func (s subResource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if s.funcs.SubResourceUpdate != nil {
		return s.funcs.SubResourceUpdate(ctx, s.WithWatch, s.name, obj, opts...)
	}
	return s.WithWatch.SubResource(s.name).Update(ctx, obj, opts...)
}

// Patch implements client.SubResourceWriter.
func (s subResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if s.funcs.SubResourcePatch != nil {
		return s.funcs.SubResourcePatch(ctx, s.WithWatch, s.name, obj, patch, opts...)
	}
	return s.WithWatch.SubResource(s.name).Patch(ctx, obj, patch, opts...)
}

// Apply implements client.SubResourceWriter.
func (s subResource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if s.funcs.SubResourceApply != nil {
		return s.funcs.SubResourceApply(ctx, s.WithWatch, s.name, obj, opts...)
	}
	return s.WithWatch.SubResource(s.name).Apply(ctx, obj, opts...)
}
