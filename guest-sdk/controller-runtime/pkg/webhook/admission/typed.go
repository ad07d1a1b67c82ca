// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_023

package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// Validator checks objects of a type.
type Validator[T runtime.Object] interface {
	// ValidateCreate checks a new object.
	ValidateCreate(ctx context.Context, obj T) (warnings Warnings, err error)
	// ValidateUpdate checks a change.
	ValidateUpdate(ctx context.Context, oldObj, newObj T) (warnings Warnings, err error)
	// ValidateDelete checks a deletion.
	ValidateDelete(ctx context.Context, obj T) (warnings Warnings, err error)
}

// CustomValidator is a Validator for any type.
type CustomValidator = Validator[runtime.Object]

// Defaulter sets defaults in objects of a type.
type Defaulter[T runtime.Object] interface {
	// Default sets the defaults in obj.
	Default(ctx context.Context, obj T) error
}

// CustomDefaulter is a Defaulter for any type.
type CustomDefaulter = Defaulter[runtime.Object]

// WithDefaulter returns the webhook of a defaulter.
func WithDefaulter[T runtime.Object](_ *runtime.Scheme, defaulter Defaulter[T], opts ...DefaulterOption) *Webhook {
	set := func(ctx context.Context, obj runtime.Object) error { return defaulter.Default(ctx, obj.(T)) } //nolint:forcetypeassert // made by freshOf
	return newDefaulting(freshOf[T](), set, opts)
}

// WithValidator returns the webhook of a validator.
func WithValidator[T runtime.Object](_ *runtime.Scheme, validator Validator[T]) *Webhook {
	return &Webhook{Handler: validating{freshOf[T](), checker(validator.ValidateCreate, validator.ValidateUpdate, validator.ValidateDelete)}}
}
