package builder

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// WebhookBuilder stands for a builder of webhooks, which a module cannot have.
type WebhookBuilder[T runtime.Object] struct{ obj T }

// WebhookManagedBy returns a builder whose Complete is an error.
func WebhookManagedBy[T runtime.Object](_ manager.Manager, obj T) *WebhookBuilder[T] {
	return &WebhookBuilder[T]{obj}
}

// WithDefaulter has no effect.
func (b *WebhookBuilder[T]) WithDefaulter(admission.Defaulter[T], ...admission.DefaulterOption) *WebhookBuilder[T] {
	return b
}

// WithCustomDefaulter has no effect.
func (b *WebhookBuilder[T]) WithCustomDefaulter(admission.CustomDefaulter, ...admission.DefaulterOption) *WebhookBuilder[T] {
	return b
}

// WithValidator has no effect.
func (b *WebhookBuilder[T]) WithValidator(admission.Validator[T]) *WebhookBuilder[T] { return b }

// WithCustomValidator has no effect.
func (b *WebhookBuilder[T]) WithCustomValidator(admission.CustomValidator) *WebhookBuilder[T] {
	return b
}

// WithLogConstructor has no effect.
func (b *WebhookBuilder[T]) WithLogConstructor(func(logr.Logger, *admission.Request) logr.Logger) *WebhookBuilder[T] {
	return b
}

// WithContextFunc has no effect.
func (b *WebhookBuilder[T]) WithContextFunc(func(context.Context, *http.Request) context.Context) *WebhookBuilder[T] {
	return b
}

// WithDefaulterCustomPath has no effect.
func (b *WebhookBuilder[T]) WithDefaulterCustomPath(string) *WebhookBuilder[T] { return b }

// WithValidatorCustomPath has no effect.
func (b *WebhookBuilder[T]) WithValidatorCustomPath(string) *WebhookBuilder[T] { return b }

// RecoverPanic has no effect.
func (b *WebhookBuilder[T]) RecoverPanic(bool) *WebhookBuilder[T] { return b }

// Complete is an error that says what to do.
func (b *WebhookBuilder[T]) Complete() error {
	return errors.New("builder: a module serves no webhooks: serve them by a program of their own, " +
		"and skip this call in the module: os.Getenv(\"ENABLE_WEBHOOKS\") is \"false\" there")
}
