// SPDX-License-Identifier: Apache-2.0

package client

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DryRunAll makes the API server check a write without storing the result.
var DryRunAll = dryRunAll{}

type dryRunAll struct{}

func dryRun() []string { return []string{metav1.DryRunAll} }

// ApplyToCreate implements CreateOption.
func (dryRunAll) ApplyToCreate(o *CreateOptions) { o.DryRun = dryRun() }

// ApplyToUpdate implements UpdateOption.
func (dryRunAll) ApplyToUpdate(o *UpdateOptions) { o.DryRun = dryRun() }

// ApplyToPatch implements PatchOption.
func (dryRunAll) ApplyToPatch(o *PatchOptions) { o.DryRun = dryRun() }

// ApplyToApply implements ApplyOption.
func (dryRunAll) ApplyToApply(o *ApplyOptions) { o.DryRun = dryRun() }

// ApplyToDelete implements DeleteOption.
func (dryRunAll) ApplyToDelete(o *DeleteOptions) { o.DryRun = dryRun() }

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (dryRunAll) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { o.DryRun = dryRun() }

// ApplyToSubResourceCreate implements SubResourceCreateOption.
func (dryRunAll) ApplyToSubResourceCreate(o *SubResourceCreateOptions) { o.DryRun = dryRun() }

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (dryRunAll) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) { o.DryRun = dryRun() }

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (dryRunAll) ApplyToSubResourcePatch(o *SubResourcePatchOptions) { o.DryRun = dryRun() }

// ApplyToSubResourceApply implements SubResourceApplyOption.
func (dryRunAll) ApplyToSubResourceApply(o *SubResourceApplyOptions) { o.DryRun = dryRun() }

// FieldOwner is the field manager of a write. The default is the host's:
// "wasmctl/" and the controller's name.
type FieldOwner string

// ApplyToCreate implements CreateOption.
func (f FieldOwner) ApplyToCreate(o *CreateOptions) { o.FieldManager = string(f) }

// ApplyToUpdate implements UpdateOption.
func (f FieldOwner) ApplyToUpdate(o *UpdateOptions) { o.FieldManager = string(f) }

// ApplyToPatch implements PatchOption.
func (f FieldOwner) ApplyToPatch(o *PatchOptions) { o.FieldManager = string(f) }

// ApplyToApply implements ApplyOption.
func (f FieldOwner) ApplyToApply(o *ApplyOptions) { o.FieldManager = string(f) }

// ApplyToSubResourceCreate implements SubResourceCreateOption.
func (f FieldOwner) ApplyToSubResourceCreate(o *SubResourceCreateOptions) {
	o.FieldManager = string(f)
}

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (f FieldOwner) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.FieldManager = string(f)
}

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (f FieldOwner) ApplyToSubResourcePatch(o *SubResourcePatchOptions) { o.FieldManager = string(f) }

// ApplyToSubResourceApply implements SubResourceApplyOption.
func (f FieldOwner) ApplyToSubResourceApply(o *SubResourceApplyOptions) { o.FieldManager = string(f) }

// FieldValidation determines how the API server handles unknown fields:
// "Ignore", "Warn" or "Strict".
type FieldValidation string

// ApplyToCreate implements CreateOption.
func (f FieldValidation) ApplyToCreate(o *CreateOptions) { o.FieldValidation = string(f) }

// ApplyToUpdate implements UpdateOption.
func (f FieldValidation) ApplyToUpdate(o *UpdateOptions) { o.FieldValidation = string(f) }

// ApplyToPatch implements PatchOption.
func (f FieldValidation) ApplyToPatch(o *PatchOptions) { o.FieldValidation = string(f) }

// ApplyToSubResourceCreate implements SubResourceCreateOption.
func (f FieldValidation) ApplyToSubResourceCreate(o *SubResourceCreateOptions) {
	o.FieldValidation = string(f)
}

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (f FieldValidation) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.FieldValidation = string(f)
}

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (f FieldValidation) ApplyToSubResourcePatch(o *SubResourcePatchOptions) {
	o.FieldValidation = string(f)
}

// ForceOwnership takes over fields that another manager owns.
var ForceOwnership = forceOwnership{}

type forceOwnership struct{}

func yes() *bool { v := true; return &v }

// ApplyToPatch implements PatchOption.
func (forceOwnership) ApplyToPatch(o *PatchOptions) { o.Force = yes() }

// ApplyToApply implements ApplyOption.
func (forceOwnership) ApplyToApply(o *ApplyOptions) { o.Force = yes() }

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (forceOwnership) ApplyToSubResourcePatch(o *SubResourcePatchOptions) { o.Force = yes() }

// ApplyToSubResourceApply implements SubResourceApplyOption.
func (forceOwnership) ApplyToSubResourceApply(o *SubResourceApplyOptions) { o.Force = yes() }
