// SPDX-License-Identifier: Apache-2.0

// Package admission has the types of admission webhooks, so that programs with
// webhooks compile. A module does not serve webhooks.
package admission

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Request asks whether a write is allowed.
type Request struct {
	admissionv1.AdmissionRequest
}

// Warnings are shown to the user who sends the write.
type Warnings []string

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

// DefaulterOption changes how a Defaulter is called.
type DefaulterOption func(*defaulterOptions)

type defaulterOptions struct{}

// DefaulterRemoveUnknownOrOmitableFields has no effect.
func DefaulterRemoveUnknownOrOmitableFields(*defaulterOptions) {}

// Handler answers requests.
type Handler interface {
	// Handle answers one request.
	Handle(context.Context, Request) Response
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(context.Context, Request) Response

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, req Request) Response { return f(ctx, req) }

// Webhook is an admission webhook, which a module does not serve.
type Webhook struct {
	Handler         Handler
	RecoverPanic    *bool
	WithContextFunc func(context.Context, *http.Request) context.Context
	LogConstructor  func(base logr.Logger, req *Request) logr.Logger
}

// DefaultLogConstructor adds the object and the user of the request to the
// logger.
func DefaultLogConstructor(base logr.Logger, req *Request) logr.Logger {
	if req == nil {
		return base
	}
	return base.WithValues("namespace", req.Namespace, "name", req.Name, "resource", req.Resource, "user", req.UserInfo.Username, "requestID", req.UID)
}

// WithRecoverPanic sets RecoverPanic.
func (wh *Webhook) WithRecoverPanic(recoverPanic bool) *Webhook {
	wh.RecoverPanic = &recoverPanic
	return wh
}

// Handle calls the handler.
func (wh *Webhook) Handle(ctx context.Context, req Request) Response {
	if wh.Handler == nil {
		return Errored(http.StatusInternalServerError, errNotServed)
	}
	return wh.Handler.Handle(ctx, req)
}

// ServeHTTP answers with the error that webhooks are not served.
func (wh *Webhook) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, errNotServed.Error(), http.StatusNotImplemented)
}

var errNotServed = errors.New("webhook: a module serves no webhooks")

// WithCustomDefaulter returns a webhook that is not served.
func WithCustomDefaulter(*runtime.Scheme, runtime.Object, CustomDefaulter, ...DefaulterOption) *Webhook {
	return &Webhook{}
}

// WithCustomValidator returns a webhook that is not served.
func WithCustomValidator(*runtime.Scheme, runtime.Object, CustomValidator) *Webhook {
	return &Webhook{}
}

// WithDefaulter returns a webhook that is not served.
func WithDefaulter[T runtime.Object](*runtime.Scheme, Defaulter[T], ...DefaulterOption) *Webhook {
	return &Webhook{}
}

// WithValidator returns a webhook that is not served.
func WithValidator[T runtime.Object](*runtime.Scheme, Validator[T]) *Webhook { return &Webhook{} }

// StandaloneOptions are the options of a webhook in a separate server.
type StandaloneOptions struct {
	Logger      logr.Logger
	MetricsPath string
}

// StandaloneWebhook returns an error, because a module has no server.
func StandaloneWebhook(*Webhook, StandaloneOptions) (http.Handler, error) { return nil, errNotServed }

// MultiMutatingHandler returns a handler that calls all handlers and merges
// their patches.
func MultiMutatingHandler(handlers ...Handler) Handler {
	return HandlerFunc(func(ctx context.Context, req Request) Response {
		var patches []jsonpatch.JsonPatchOperation
		for _, h := range handlers {
			res := h.Handle(ctx, req)
			if !res.Allowed {
				return res
			}
			patches = append(patches, res.Patches...)
		}
		return Patched("", patches...)
	})
}

// MultiValidatingHandler returns a handler that calls the handlers in turn
// until one denies the request.
func MultiValidatingHandler(handlers ...Handler) Handler {
	return HandlerFunc(func(ctx context.Context, req Request) Response {
		for _, h := range handlers {
			if res := h.Handle(ctx, req); !res.Allowed {
				return res
			}
		}
		return Allowed("")
	})
}

type requestKey struct{}

// NewContextWithRequest returns a context with req.
func NewContextWithRequest(ctx context.Context, req Request) context.Context {
	return context.WithValue(ctx, requestKey{}, req)
}

// RequestFromContext returns the request of a context.
func RequestFromContext(ctx context.Context) (Request, error) {
	if req, ok := ctx.Value(requestKey{}).(Request); ok {
		return req, nil
	}
	return Request{}, errors.New("context: has no admission request")
}
