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
	return withOptions(o, opts, SubResourceGetOption.ApplyToSubResourceGet)
}

// ApplyToSubResourceGet implements SubResourceGetOption.
func (o *SubResourceGetOptions) ApplyToSubResourceGet(to *SubResourceGetOptions) { merge(to, o) }

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
	return withOptions(o, opts, SubResourceCreateOption.ApplyToSubResourceCreate)
}

// ApplyToSubResourceCreate implements SubResourceCreateOption.
func (o *SubResourceCreateOptions) ApplyToSubResourceCreate(to *SubResourceCreateOptions) {
	merge(to, o)
}

// ApplyToSubresourceCreate is the name of ApplyToSubResourceCreate before
// version 0.18.
func (o *SubResourceCreateOptions) ApplyToSubresourceCreate(to *SubResourceCreateOptions) {
	merge(to, o)
}

// SubResourceUpdateOptions are the options of SubResourceWriter.Update.
type SubResourceUpdateOptions struct {
	UpdateOptions
	// SubResourceBody is sent instead of the object.
	SubResourceBody Object
}

// ApplyOptions applies opts to o.
func (o *SubResourceUpdateOptions) ApplyOptions(opts []SubResourceUpdateOption) *SubResourceUpdateOptions {
	return withOptions(o, opts, SubResourceUpdateOption.ApplyToSubResourceUpdate)
}

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (o *SubResourceUpdateOptions) ApplyToSubResourceUpdate(to *SubResourceUpdateOptions) {
	merge(to, o)
}

// SubResourcePatchOptions are the options of SubResourceWriter.Patch.
type SubResourcePatchOptions struct {
	PatchOptions
	// SubResourceBody is the desired state of the patch, instead of the object.
	SubResourceBody Object
}

// ApplyOptions applies opts to o.
func (o *SubResourcePatchOptions) ApplyOptions(opts []SubResourcePatchOption) *SubResourcePatchOptions {
	return withOptions(o, opts, SubResourcePatchOption.ApplyToSubResourcePatch)
}

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (o *SubResourcePatchOptions) ApplyToSubResourcePatch(to *SubResourcePatchOptions) { merge(to, o) }

// SubResourceApplyOptions are the options of SubResourceWriter.Apply.
type SubResourceApplyOptions struct {
	ApplyOptions
	// SubResourceBody is applied instead of the object.
	SubResourceBody runtime.ApplyConfiguration
}

// ApplyOpts applies opts to o.
func (o *SubResourceApplyOptions) ApplyOpts(opts []SubResourceApplyOption) *SubResourceApplyOptions {
	return withOptions(o, opts, SubResourceApplyOption.ApplyToSubResourceApply)
}

// ApplyToSubResourceApply implements SubResourceApplyOption.
func (o *SubResourceApplyOptions) ApplyToSubResourceApply(to *SubResourceApplyOptions) { merge(to, o) }

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
