// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_023

package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// CustomValidator checks objects.
type CustomValidator interface {
	// ValidateCreate checks a new object.
	ValidateCreate(ctx context.Context, obj runtime.Object) (warnings Warnings, err error)
	// ValidateUpdate checks a change.
	ValidateUpdate(ctx context.Context, oldObj, newObj runtime.Object) (warnings Warnings, err error)
	// ValidateDelete checks a deletion.
	ValidateDelete(ctx context.Context, obj runtime.Object) (warnings Warnings, err error)
}

// CustomDefaulter sets defaults in objects.
type CustomDefaulter interface {
	// Default sets the defaults in obj.
	Default(ctx context.Context, obj runtime.Object) error
}

// Defaulter is an object that sets its own defaults. Version 0.19 is the last
// one that has it.
type Defaulter interface {
	runtime.Object
	// Default sets the defaults.
	Default()
}

// Validator is an object that validates itself. Version 0.19 is the last one
// that has it.
type Validator interface {
	runtime.Object
	// ValidateCreate checks a new object.
	ValidateCreate() (warnings Warnings, err error)
	// ValidateUpdate checks a change from old.
	ValidateUpdate(old runtime.Object) (warnings Warnings, err error)
	// ValidateDelete checks a deletion.
	ValidateDelete() (warnings Warnings, err error)
}

// DefaultingWebhookFor returns the webhook of a type that sets its own
// defaults.
func DefaultingWebhookFor(_ *runtime.Scheme, defaulter Defaulter) *Webhook {
	return newDefaulting(copyOf(defaulter), func(_ context.Context, obj runtime.Object) error {
		obj.(Defaulter).Default() //nolint:forcetypeassert // made by copyOf
		return nil
	}, nil)
}

// ValidatingWebhookFor returns the webhook of a type that validates itself.
func ValidatingWebhookFor(_ *runtime.Scheme, validator Validator) *Webhook {
	return &Webhook{Handler: validating{copyOf(validator), checker(
		func(_ context.Context, now Validator) (Warnings, error) { return now.ValidateCreate() },
		func(_ context.Context, old, now Validator) (Warnings, error) { return now.ValidateUpdate(old) },
		func(_ context.Context, old Validator) (Warnings, error) { return old.ValidateDelete() },
	)}}
}
