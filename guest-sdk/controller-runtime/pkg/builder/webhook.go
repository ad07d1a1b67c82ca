// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WebhookBuilder lets programs with webhooks compile. Its methods accept the
// arguments of the original, in versions with type parameters and before.
type WebhookBuilder struct{ object runtime.Object }

// WebhookManagedBy starts a webhook, which a module cannot serve. Programs of
// kubebuilder do not call it in a module, because ENABLE_WEBHOOKS is false
// there.
func WebhookManagedBy(_ manager.Manager, object ...runtime.Object) *WebhookBuilder {
	b := &WebhookBuilder{}
	if len(object) > 0 {
		b.object = object[0]
	}
	return b
}

// For sets the type of the webhook.
func (b *WebhookBuilder) For(object runtime.Object) *WebhookBuilder {
	b.object = object
	return b
}

// WithDefaulter has no effect.
func (b *WebhookBuilder) WithDefaulter(any, ...any) *WebhookBuilder { return b }

// WithValidator has no effect.
func (b *WebhookBuilder) WithValidator(any) *WebhookBuilder { return b }

// WithCustomDefaulter has no effect.
func (b *WebhookBuilder) WithCustomDefaulter(any, ...any) *WebhookBuilder { return b }

// WithCustomValidator has no effect.
func (b *WebhookBuilder) WithCustomValidator(any) *WebhookBuilder { return b }

// WithConverter has no effect.
func (b *WebhookBuilder) WithConverter(any) *WebhookBuilder { return b }

// WithValidatorCustomPath has no effect.
func (b *WebhookBuilder) WithValidatorCustomPath(string) *WebhookBuilder { return b }

// WithDefaulterCustomPath has no effect.
func (b *WebhookBuilder) WithDefaulterCustomPath(string) *WebhookBuilder { return b }

// WithCustomPath has no effect.
func (b *WebhookBuilder) WithCustomPath(string) *WebhookBuilder { return b }

// WithLogConstructor has no effect.
func (b *WebhookBuilder) WithLogConstructor(any) *WebhookBuilder { return b }

// WithContextFunc has no effect.
func (b *WebhookBuilder) WithContextFunc(any) *WebhookBuilder { return b }

// RecoverPanic has no effect.
func (b *WebhookBuilder) RecoverPanic(...bool) *WebhookBuilder { return b }

// Complete returns an error with the next step, unless the module was built
// without webhooks.
func (b *WebhookBuilder) Complete() error {
	if program.Without(program.Webhooks) {
		logf.Log.Info("webhook: a module does not serve it; run the operator's own binary for the webhook", "type", fmt.Sprintf("%T", b.object))
		return nil
	}
	return fmt.Errorf("webhook for %T: %s", b.object, program.NoWebhooks)
}
