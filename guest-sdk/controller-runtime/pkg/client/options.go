// SPDX-License-Identifier: Apache-2.0

package client

import "reflect"

// CreateOption is an option of Writer.Create.
type CreateOption interface{ ApplyToCreate(*CreateOptions) }

// DeleteOption is an option of Writer.Delete.
type DeleteOption interface{ ApplyToDelete(*DeleteOptions) }

// GetOption is an option of Reader.Get.
type GetOption interface{ ApplyToGet(*GetOptions) }

// ListOption is an option of Reader.List.
type ListOption interface{ ApplyToList(*ListOptions) }

// UpdateOption is an option of Writer.Update.
type UpdateOption interface{ ApplyToUpdate(*UpdateOptions) }

// PatchOption is an option of Writer.Patch.
type PatchOption interface{ ApplyToPatch(*PatchOptions) }

// ApplyOption is an option of Writer.Apply.
type ApplyOption interface{ ApplyToApply(*ApplyOptions) }

// DeleteAllOfOption is an option of Writer.DeleteAllOf.
type DeleteAllOfOption interface{ ApplyToDeleteAllOf(*DeleteAllOfOptions) }

// SubResourceGetOption is an option of SubResourceReader.Get.
type SubResourceGetOption interface{ ApplyToSubResourceGet(*SubResourceGetOptions) }

// SubResourceUpdateOption is an option of SubResourceWriter.Update.
type SubResourceUpdateOption interface {
	ApplyToSubResourceUpdate(*SubResourceUpdateOptions)
}

// SubResourceCreateOption is an option of SubResourceWriter.Create.
type SubResourceCreateOption interface {
	ApplyToSubResourceCreate(*SubResourceCreateOptions)
}

// SubResourcePatchOption is an option of SubResourceWriter.Patch.
type SubResourcePatchOption interface {
	ApplyToSubResourcePatch(*SubResourcePatchOptions)
}

// SubResourceApplyOption is an option of SubResourceWriter.Apply.
type SubResourceApplyOption interface {
	ApplyToSubResourceApply(*SubResourceApplyOptions)
}

// SubResourceUpdateAndPatchOption is an option of Update and Patch of
// SubResourceWriter.
type SubResourceUpdateAndPatchOption interface {
	SubResourceUpdateOption
	SubResourcePatchOption
}

// withOptions returns o after each of the options was applied to it.
func withOptions[O, Option any](o *O, opts []Option, apply func(Option, *O)) *O {
	for _, opt := range opts {
		apply(opt, o)
	}
	return o
}

// merge sets the fields of a struct to those of another one that are not zero.
func merge[O any](to, from *O) { mergeFields(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()) }

func mergeFields(to, from reflect.Value) {
	for i := range from.NumField() {
		switch field := from.Field(i); {
		case from.Type().Field(i).Anonymous:
			mergeFields(to.Field(i), field)
		case !field.IsZero():
			to.Field(i).Set(field)
		}
	}
}
