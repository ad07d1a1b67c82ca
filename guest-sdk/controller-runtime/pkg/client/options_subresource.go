// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SubResourceGetOptions are the options of SubResourceReader.Get.
type SubResourceGetOptions struct {
	// Raw has options of the API.
	Raw *metav1.GetOptions
}

// ApplyOptions applies opts to o.
func (o *SubResourceGetOptions) ApplyOptions(opts []SubResourceGetOption) *SubResourceGetOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceGet(o)
	}
	return o
}

// ApplyToSubResourceGet implements SubResourceGetOption.
func (o *SubResourceGetOptions) ApplyToSubResourceGet(to *SubResourceGetOptions) {
	set(&to.Raw, o.Raw)
}

// AsGetOptions returns the options of the API.
func (o *SubResourceGetOptions) AsGetOptions() *metav1.GetOptions {
	if o.Raw == nil {
		return &metav1.GetOptions{}
	}
	return o.Raw
}

// SubResourceCreateOptions are the options of SubResourceWriter.Create.
type SubResourceCreateOptions struct {
	CreateOptions
}

// ApplyOptions applies opts to o.
func (o *SubResourceCreateOptions) ApplyOptions(opts []SubResourceCreateOption) *SubResourceCreateOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceCreate(o)
	}
	return o
}

// ApplyToSubResourceCreate implements SubResourceCreateOption.
func (o *SubResourceCreateOptions) ApplyToSubResourceCreate(to *SubResourceCreateOptions) {
	o.ApplyToCreate(&to.CreateOptions)
}

// ApplyToSubresourceCreate is the name of ApplyToSubResourceCreate before
// version 0.18.
func (o *SubResourceCreateOptions) ApplyToSubresourceCreate(to *SubResourceCreateOptions) {
	o.ApplyToSubResourceCreate(to)
}

// SubResourceUpdateOptions are the options of SubResourceWriter.Update.
type SubResourceUpdateOptions struct {
	UpdateOptions
	// SubResourceBody is sent instead of the object.
	SubResourceBody Object
}

// ApplyOptions applies opts to o.
func (o *SubResourceUpdateOptions) ApplyOptions(opts []SubResourceUpdateOption) *SubResourceUpdateOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceUpdate(o)
	}
	return o
}

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (o *SubResourceUpdateOptions) ApplyToSubResourceUpdate(to *SubResourceUpdateOptions) {
	o.ApplyToUpdate(&to.UpdateOptions)
	if o.SubResourceBody != nil {
		to.SubResourceBody = o.SubResourceBody
	}
}

// SubResourcePatchOptions are the options of SubResourceWriter.Patch.
type SubResourcePatchOptions struct {
	PatchOptions
	// SubResourceBody is the desired state of the patch, instead of the object.
	SubResourceBody Object
}

// ApplyOptions applies opts to o.
func (o *SubResourcePatchOptions) ApplyOptions(opts []SubResourcePatchOption) *SubResourcePatchOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourcePatch(o)
	}
	return o
}

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (o *SubResourcePatchOptions) ApplyToSubResourcePatch(to *SubResourcePatchOptions) {
	o.ApplyToPatch(&to.PatchOptions)
	if o.SubResourceBody != nil {
		to.SubResourceBody = o.SubResourceBody
	}
}

// SubResourceApplyOptions are the options of SubResourceWriter.Apply.
type SubResourceApplyOptions struct {
	ApplyOptions
	// SubResourceBody is applied instead of the object.
	SubResourceBody runtime.ApplyConfiguration
}

// ApplyOpts applies opts to o.
func (o *SubResourceApplyOptions) ApplyOpts(opts []SubResourceApplyOption) *SubResourceApplyOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceApply(o)
	}
	return o
}

// ApplyToSubResourceApply implements SubResourceApplyOption.
func (o *SubResourceApplyOptions) ApplyToSubResourceApply(to *SubResourceApplyOptions) {
	o.ApplyToApply(&to.ApplyOptions)
	if o.SubResourceBody != nil {
		to.SubResourceBody = o.SubResourceBody
	}
}

// WithSubResourceBody sends body instead of the object.
func WithSubResourceBody(body Object) SubResourceUpdateAndPatchOption { return subResourceBody{body} }

type subResourceBody struct{ body Object }

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (b subResourceBody) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.SubResourceBody = b.body
}

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (b subResourceBody) ApplyToSubResourcePatch(o *SubResourcePatchOptions) {
	o.SubResourceBody = b.body
}
