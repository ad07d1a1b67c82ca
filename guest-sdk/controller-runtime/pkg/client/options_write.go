// SPDX-License-Identifier: Apache-2.0

package client

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CreateOptions are the options of Writer.Create.
type CreateOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// DryRun is metav1.DryRunAll for a write that is only checked.
	DryRun []string
	// FieldManager is the field manager of the write; see FieldOwner.
	FieldManager string
	// FieldValidation determines the handling of unknown fields.
	FieldValidation string
	// Raw has options of the API; the fields above override them.
	Raw *metav1.CreateOptions
}

// ApplyOptions applies opts to o.
func (o *CreateOptions) ApplyOptions(opts []CreateOption) *CreateOptions {
	return withOptions(o, opts, CreateOption.ApplyToCreate)
}

// ApplyToCreate implements CreateOption.
func (o *CreateOptions) ApplyToCreate(to *CreateOptions) { merge(to, o) }

// AsCreateOptions returns the options of the API.
func (o *CreateOptions) AsCreateOptions() *metav1.CreateOptions {
	if o == nil {
		return &metav1.CreateOptions{}
	}
	if o.Raw == nil {
		o.Raw = &metav1.CreateOptions{}
	}
	o.Raw.DryRun, o.Raw.FieldManager, o.Raw.FieldValidation = o.DryRun, o.FieldManager, o.FieldValidation
	return o.Raw
}

// UpdateOptions are the options of Writer.Update.
type UpdateOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// DryRun is metav1.DryRunAll for a write that is only checked.
	DryRun []string
	// FieldManager is the field manager of the write; see FieldOwner.
	FieldManager string
	// FieldValidation determines the handling of unknown fields.
	FieldValidation string
	// Raw has options of the API; the fields above override them.
	Raw *metav1.UpdateOptions
}

// ApplyOptions applies opts to o.
func (o *UpdateOptions) ApplyOptions(opts []UpdateOption) *UpdateOptions {
	return withOptions(o, opts, UpdateOption.ApplyToUpdate)
}

// ApplyToUpdate implements UpdateOption.
func (o *UpdateOptions) ApplyToUpdate(to *UpdateOptions) { merge(to, o) }

// AsUpdateOptions returns the options of the API.
func (o *UpdateOptions) AsUpdateOptions() *metav1.UpdateOptions {
	if o == nil {
		return &metav1.UpdateOptions{}
	}
	if o.Raw == nil {
		o.Raw = &metav1.UpdateOptions{}
	}
	o.Raw.DryRun, o.Raw.FieldManager, o.Raw.FieldValidation = o.DryRun, o.FieldManager, o.FieldValidation
	return o.Raw
}

// PatchOptions are the options of Writer.Patch.
type PatchOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// DryRun is metav1.DryRunAll for a write that is only checked.
	DryRun []string
	// Force takes over fields of other managers; only for patches of type Apply.
	Force *bool
	// FieldManager is the field manager of the write; see FieldOwner.
	FieldManager string
	// FieldValidation determines the handling of unknown fields.
	FieldValidation string
	// Raw has options of the API; the fields above override them.
	Raw *metav1.PatchOptions
}

// ApplyOptions applies opts to o.
func (o *PatchOptions) ApplyOptions(opts []PatchOption) *PatchOptions {
	return withOptions(o, opts, PatchOption.ApplyToPatch)
}

// ApplyToPatch implements PatchOption.
func (o *PatchOptions) ApplyToPatch(to *PatchOptions) { merge(to, o) }

// AsPatchOptions returns the options of the API.
func (o *PatchOptions) AsPatchOptions() *metav1.PatchOptions {
	if o == nil {
		return &metav1.PatchOptions{}
	}
	if o.Raw == nil {
		o.Raw = &metav1.PatchOptions{}
	}
	merge(o.Raw, &metav1.PatchOptions{DryRun: o.DryRun, Force: o.Force, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation})
	return o.Raw
}

// ApplyOptions are the options of Writer.Apply.
type ApplyOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// DryRun is metav1.DryRunAll for a write that is only checked.
	DryRun []string
	// Force takes over fields of other managers.
	Force *bool
	// FieldManager is the field manager of the write; see FieldOwner.
	FieldManager string
}

// ApplyOptions applies opts to o.
func (o *ApplyOptions) ApplyOptions(opts []ApplyOption) *ApplyOptions {
	return withOptions(o, opts, ApplyOption.ApplyToApply)
}

// ApplyToApply implements ApplyOption.
func (o *ApplyOptions) ApplyToApply(to *ApplyOptions) { merge(to, o) }

// AsPatchOptions returns the options of the API.
func (o *ApplyOptions) AsPatchOptions() *metav1.PatchOptions {
	return &metav1.PatchOptions{DryRun: o.DryRun, Force: o.Force, FieldManager: o.FieldManager}
}
