// SPDX-License-Identifier: Apache-2.0

// Package webhook has the webhook server of a manager. In a module, it only
// collects the webhooks, which the host serves.
package webhook

import (
	"context"
	"crypto/tls"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Aliases for names of package admission.
type (
	// AdmissionRequest is a request.
	AdmissionRequest = admission.Request
	// AdmissionResponse is the answer.
	AdmissionResponse = admission.Response
	// Admission is a webhook.
	Admission = admission.Webhook
	// AdmissionHandler answers requests.
	AdmissionHandler = admission.Handler
	// AdmissionDecoder decodes the objects of requests.
	AdmissionDecoder = admission.Decoder
	// CustomValidator checks objects.
	CustomValidator = admission.CustomValidator
	// CustomDefaulter sets defaults.
	CustomDefaulter = admission.CustomDefaulter
	// JSONPatchOp is one change of a JSON patch.
	JSONPatchOp = jsonpatch.Operation
)

// The functions of package admission that make responses.
var (
	Allowed = admission.Allowed
	Denied  = admission.Denied
	Patched = admission.Patched
	Errored = admission.Errored
)

// DefaultPort is the default of Options.Port.
var DefaultPort = 9443

// Options of a server have no effect.
type Options struct {
	Host         string
	Port         int
	CertDir      string
	CertName     string
	KeyName      string
	ClientCAName string
	TLSOpts      []func(*tls.Config)
	WebhookMux   *http.ServeMux
	// The fields below are those of version 0.15.
	TLSMinVersion string
}

// Server represents a webhook server.
type Server interface {
	// NeedLeaderElection returns false.
	NeedLeaderElection() bool
	// Register adds a webhook, which must be a *admission.Webhook or the
	// handler of package conversion. It panics if the path has a webhook.
	Register(path string, hook http.Handler)
	// Start waits until ctx is done.
	Start(ctx context.Context) error
	// StartedChecker returns a check that always succeeds.
	StartedChecker() healthz.Checker
	// WebhookMux returns the mux of the options.
	WebhookMux() *http.ServeMux
}

// Hook is a registered webhook.
type Hook struct {
	Path    string
	Handler http.Handler
}

// DefaultServer collects webhooks.
type DefaultServer struct {
	Options Options
	hooks   []Hook
}

// NewServer returns a server that collects webhooks.
func NewServer(o Options) Server {
	if o.WebhookMux == nil {
		o.WebhookMux = http.NewServeMux()
	}
	return &DefaultServer{Options: o}
}

// NeedLeaderElection implements Server.
func (*DefaultServer) NeedLeaderElection() bool { return false }

// Register implements Server.
func (s *DefaultServer) Register(path string, hook http.Handler) {
	s.Options.WebhookMux.Handle(path, hook)
	s.hooks = append(s.hooks, Hook{path, hook})
}

// Hooks returns the registered webhooks.
func (s *DefaultServer) Hooks() []Hook { return s.hooks }

// Start implements Server.
func (*DefaultServer) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// StartedChecker implements Server.
func (*DefaultServer) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux implements Server.
func (s *DefaultServer) WebhookMux() *http.ServeMux { return s.Options.WebhookMux }
