// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_023

package builder

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// WebhookBuilder builds the webhooks of a type.
type WebhookBuilder[T runtime.Object] struct{ hooks }

// WebhookManagedBy returns a builder for webhooks of the manager.
func WebhookManagedBy[T runtime.Object](m manager.Manager, object T) *WebhookBuilder[T] {
	return &WebhookBuilder[T]{hooks{mgr: m, object: object}}
}

// WithDefaulter sets the function that defaults objects.
func (b *WebhookBuilder[T]) WithDefaulter(defaulter admission.Defaulter[T], opts ...admission.DefaulterOption) *WebhookBuilder[T] {
	b.setDefaulter(func() *admission.Webhook { return admission.WithDefaulter(b.mgr.GetScheme(), defaulter, opts...) })
	return b
}

// WithCustomDefaulter is WithDefaulter for a defaulter of any type.
func (b *WebhookBuilder[T]) WithCustomDefaulter(defaulter admission.CustomDefaulter, opts ...admission.DefaulterOption) *WebhookBuilder[T] {
	b.setDefaulter(func() *admission.Webhook {
		return admission.WithCustomDefaulter(b.mgr.GetScheme(), b.object, defaulter, opts...)
	})
	return b
}

// WithValidator sets the functions that validate objects.
func (b *WebhookBuilder[T]) WithValidator(validator admission.Validator[T]) *WebhookBuilder[T] {
	b.setValidator(func() *admission.Webhook { return admission.WithValidator(b.mgr.GetScheme(), validator) })
	return b
}

// WithCustomValidator is WithValidator for a validator of any type.
func (b *WebhookBuilder[T]) WithCustomValidator(validator admission.CustomValidator) *WebhookBuilder[T] {
	b.setValidator(func() *admission.Webhook {
		return admission.WithCustomValidator(b.mgr.GetScheme(), b.object, validator)
	})
	return b
}

// WithConverter sets the function that makes the converter of the kind.
func (b *WebhookBuilder[T]) WithConverter(converterConstructor func(*runtime.Scheme) (conversion.Converter, error)) *WebhookBuilder[T] {
	b.converter = converterConstructor
	return b
}

// WithLogConstructor sets the function that returns the logger of a request.
func (b *WebhookBuilder[T]) WithLogConstructor(logConstructor func(base logr.Logger, req *admission.Request) logr.Logger) *WebhookBuilder[T] {
	b.logger = logConstructor
	return b
}

// WithContextFunc sets the function that returns the context of a request.
func (b *WebhookBuilder[T]) WithContextFunc(contextFunc func(context.Context, *http.Request) context.Context) *WebhookBuilder[T] {
	b.context = contextFunc
	return b
}

// RecoverPanic has no effect; see admission.Webhook.
func (b *WebhookBuilder[T]) RecoverPanic(bool) *WebhookBuilder[T] { return b }

// WithValidatorCustomPath sets the path of the validator.
func (b *WebhookBuilder[T]) WithValidatorCustomPath(customPath string) *WebhookBuilder[T] {
	b.validatorPath = customPath
	return b
}

// WithDefaulterCustomPath sets the path of the defaulter.
func (b *WebhookBuilder[T]) WithDefaulterCustomPath(customPath string) *WebhookBuilder[T] {
	b.defaulterPath = customPath
	return b
}

// Complete adds the webhooks to the server of the manager.
func (b *WebhookBuilder[T]) Complete() error { return b.complete() }
