// SPDX-License-Identifier: Apache-2.0

package client

// DisableReadYourWritesConsistency has no effect: the host's cache always
// includes the writes of a run when the next run of the object starts.
const DisableReadYourWritesConsistency = disableReadYourWrites(true)

type disableReadYourWrites bool

// ApplyToGet implements GetOption.
func (d disableReadYourWrites) ApplyToGet(o *GetOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToList implements ListOption.
func (d disableReadYourWrites) ApplyToList(o *ListOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToCreate implements CreateOption.
func (d disableReadYourWrites) ApplyToCreate(o *CreateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToUpdate implements UpdateOption.
func (d disableReadYourWrites) ApplyToUpdate(o *UpdateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToPatch implements PatchOption.
func (d disableReadYourWrites) ApplyToPatch(o *PatchOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToApply implements ApplyOption.
func (d disableReadYourWrites) ApplyToApply(o *ApplyOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToDelete implements DeleteOption.
func (d disableReadYourWrites) ApplyToDelete(o *DeleteOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToSubResourceCreate implements SubResourceCreateOption.
func (d disableReadYourWrites) ApplyToSubResourceCreate(o *SubResourceCreateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToSubResourceUpdate implements SubResourceUpdateOption.
func (d disableReadYourWrites) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToSubResourcePatch implements SubResourcePatchOption.
func (d disableReadYourWrites) ApplyToSubResourcePatch(o *SubResourcePatchOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// ApplyToSubResourceApply implements SubResourceApplyOption.
func (d disableReadYourWrites) ApplyToSubResourceApply(o *SubResourceApplyOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}
