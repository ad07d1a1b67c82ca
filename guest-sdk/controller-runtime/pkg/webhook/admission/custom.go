// SPDX-License-Identifier: Apache-2.0

package admission

import "k8s.io/apimachinery/pkg/runtime"

// WithCustomDefaulter returns the webhook of a defaulter for the type of obj.
func WithCustomDefaulter(_ *runtime.Scheme, obj runtime.Object, defaulter CustomDefaulter, opts ...DefaulterOption) *Webhook {
	return newDefaulting(copyOf(obj), defaulter.Default, opts)
}

// WithCustomValidator returns the webhook of a validator for the type of obj.
func WithCustomValidator(_ *runtime.Scheme, obj runtime.Object, validator CustomValidator) *Webhook {
	return &Webhook{Handler: validating{copyOf(obj), checker(validator.ValidateCreate, validator.ValidateUpdate, validator.ValidateDelete)}}
}
