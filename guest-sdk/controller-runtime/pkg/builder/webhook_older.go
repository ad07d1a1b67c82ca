// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_023

package builder

import (
	"cmp"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// WebhookBuilder builds the webhooks of a type.
type WebhookBuilder struct {
	hooks

	path string // of the defaulter or the validator
}

// WebhookManagedBy returns a builder for webhooks of the manager.
func WebhookManagedBy(m manager.Manager) *WebhookBuilder {
	return &WebhookBuilder{hooks: hooks{mgr: m}}
}

// For sets the type of the webhooks.
func (b *WebhookBuilder) For(apiType runtime.Object) *WebhookBuilder {
	if b.object != nil {
		b.err = cmp.Or(b.err, errors.New("builder: For was called twice; a webhook has one type"))
	}
	b.object = apiType
	return b
}

// WithDefaulter sets the function that defaults objects.
func (b *WebhookBuilder) WithDefaulter(defaulter admission.CustomDefaulter, opts ...admission.DefaulterOption) *WebhookBuilder {
	b.setDefaulter(func() *admission.Webhook {
		return admission.WithCustomDefaulter(b.mgr.GetScheme(), b.object, defaulter, opts...)
	})
	return b
}

// WithValidator sets the functions that validate objects.
func (b *WebhookBuilder) WithValidator(validator admission.CustomValidator) *WebhookBuilder {
	b.setValidator(func() *admission.Webhook {
		return admission.WithCustomValidator(b.mgr.GetScheme(), b.object, validator)
	})
	return b
}

// WithLogConstructor sets the function that returns the logger of a request.
func (b *WebhookBuilder) WithLogConstructor(logConstructor func(base logr.Logger, req *admission.Request) logr.Logger) *WebhookBuilder {
	b.logger = logConstructor
	return b
}

// RecoverPanic has no effect; see admission.Webhook.
func (b *WebhookBuilder) RecoverPanic(...bool) *WebhookBuilder { return b }

// WithCustomPath sets the path of the only webhook.
func (b *WebhookBuilder) WithCustomPath(customPath string) *WebhookBuilder {
	b.path = customPath
	return b
}

// WithValidatorCustomPath sets the path of the validator.
func (b *WebhookBuilder) WithValidatorCustomPath(customPath string) *WebhookBuilder {
	b.validatorPath = customPath
	return b
}

// WithDefaulterCustomPath sets the path of the defaulter.
func (b *WebhookBuilder) WithDefaulterCustomPath(customPath string) *WebhookBuilder {
	b.defaulterPath = customPath
	return b
}

// Complete adds the webhooks to the server of the manager. Without a defaulter
// or a validator, the type itself may be one.
func (b *WebhookBuilder) Complete() error {
	if d, ok := b.object.(admission.Defaulter); ok && b.defaulter == nil {
		b.setDefaulter(func() *admission.Webhook { return admission.DefaultingWebhookFor(b.mgr.GetScheme(), d) })
	}
	if v, ok := b.object.(admission.Validator); ok && b.validator == nil {
		b.setValidator(func() *admission.Webhook { return admission.ValidatingWebhookFor(b.mgr.GetScheme(), v) })
	}
	if b.path != "" {
		if b.defaulter != nil && b.validator != nil || b.defaulterPath != "" || b.validatorPath != "" {
			b.err = cmp.Or(b.err, errors.New("builder: WithCustomPath is for one webhook; use WithDefaulterCustomPath and WithValidatorCustomPath"))
		}
		b.defaulterPath, b.validatorPath = b.path, b.path
	}
	return b.complete()
}
