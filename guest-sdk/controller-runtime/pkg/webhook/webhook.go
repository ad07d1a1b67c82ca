// Package webhook has the webhook server of a manager, so that programs that
// have webhooks compile. A module serves none.
package webhook

import (
	"context"
	"crypto/tls"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The names that programs use of package admission.
type (
	// AdmissionRequest is a request.
	AdmissionRequest = admission.Request
	// AdmissionResponse is the answer.
	AdmissionResponse = admission.Response
	// Admission is a webhook.
	Admission = admission.Webhook
	// AdmissionHandler answers requests.
	AdmissionHandler = admission.Handler
	// AdmissionDecoder reads objects of requests.
	AdmissionDecoder = admission.Decoder
	// CustomValidator checks objects.
	CustomValidator = admission.CustomValidator
	// CustomDefaulter fills in defaults.
	CustomDefaulter = admission.CustomDefaulter
	// JSONPatchOp is one change of a JSON patch.
	JSONPatchOp = jsonpatch.Operation
)

// The answers of package admission.
var (
	Allowed = admission.Allowed
	Denied  = admission.Denied
	Patched = admission.Patched
	Errored = admission.Errored
)

// DefaultPort is the port of a server without one.
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
	// TLSMinVersion is of version 0.15.
	TLSMinVersion string
}

// Server stands for a webhook server.
type Server interface {
	// NeedLeaderElection returns false.
	NeedLeaderElection() bool
	// Register notes a hook; see Paths.
	Register(path string, hook http.Handler)
	// Start waits until ctx is done.
	Start(ctx context.Context) error
	// StartedChecker returns a check that is always well.
	StartedChecker() healthz.Checker
	// WebhookMux returns the handlers that were registered.
	WebhookMux() *http.ServeMux
}

// DefaultServer is a server that does not serve.
type DefaultServer struct {
	Options Options
	paths   []string
}

// NewServer returns a server that does not serve.
func NewServer(o Options) Server {
	if o.WebhookMux == nil {
		o.WebhookMux = http.NewServeMux()
	}
	return &DefaultServer{Options: o}
}

// NeedLeaderElection implements Server.
func (*DefaultServer) NeedLeaderElection() bool { return false }

// Register implements Server.
func (s *DefaultServer) Register(path string, _ http.Handler) { s.paths = append(s.paths, path) }

// Paths are those of the hooks that were registered, which nobody serves.
func (s *DefaultServer) Paths() []string { return s.paths }

// Start implements Server.
func (*DefaultServer) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// StartedChecker implements Server.
func (*DefaultServer) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux implements Server.
func (s *DefaultServer) WebhookMux() *http.ServeMux { return s.Options.WebhookMux }
