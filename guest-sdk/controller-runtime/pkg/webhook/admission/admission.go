// SPDX-License-Identifier: Apache-2.0

// Package admission has the webhooks that validate and default the objects of
// requests to the API server. The host receives the requests, and calls the
// module for each.
package admission

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Request asks whether a write is allowed.
type Request struct {
	admissionv1.AdmissionRequest
}

// Handler answers requests.
type Handler interface {
	// Handle answers one request.
	Handle(context.Context, Request) Response
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(context.Context, Request) Response

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, req Request) Response { return f(ctx, req) }

// Webhook is an admission webhook.
type Webhook struct {
	Handler Handler
	// RecoverPanic has no effect: after a panic the host replaces the instance,
	// and the failure policy decides.
	RecoverPanic    *bool
	WithContextFunc func(context.Context, *http.Request) context.Context
	LogConstructor  func(base logr.Logger, req *Request) logr.Logger

	log logr.Logger
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

// Handle calls the handler, with a logger in its context, and completes the
// response.
func (wh *Webhook) Handle(ctx context.Context, req Request) Response {
	construct := wh.LogConstructor
	if construct == nil {
		construct = DefaultLogConstructor
	}
	base := wh.log
	if base.GetSink() == nil {
		base = logf.Log.WithName("admission")
	}
	res := wh.Handler.Handle(logf.IntoContext(ctx, construct(base, &req)), req)
	if err := res.Complete(req); err != nil {
		res = Errored(http.StatusInternalServerError, err)
		res.UID = req.UID
	}
	return res
}

// ServeHTTP answers with an error: requests to a module do not come over HTTP.
func (*Webhook) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "webhook: the host calls the webhooks of a module, which has no server", http.StatusNotImplemented)
}

// StandaloneOptions are the options of a webhook in a separate server.
type StandaloneOptions struct {
	Logger logr.Logger
	// MetricsPath has no effect: the host has metrics of all webhooks.
	MetricsPath string
}

// StandaloneWebhook returns the webhook, which a program can register with the
// manager's server.
func StandaloneWebhook(hook *Webhook, opts StandaloneOptions) (http.Handler, error) {
	hook.log = opts.Logger
	return hook, nil
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
