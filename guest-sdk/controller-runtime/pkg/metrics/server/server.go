// SPDX-License-Identifier: Apache-2.0

// Package server has the options of the metrics server. A module has no server:
// the host exports the metrics of its controllers.
package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/go-logr/logr"

	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// DefaultBindAddress is the default of Options.BindAddress.
var DefaultBindAddress = ":8080"

// Filter wraps a handler with authentication.
type Filter func(log logr.Logger, handler http.Handler) (http.Handler, error)

// Options have no effect in a module.
type Options struct {
	SecureServing  bool
	BindAddress    string
	ExtraHandlers  map[string]http.Handler
	FilterProvider func(c *rest.Config, httpClient *http.Client) (Filter, error)
	CertDir        string
	CertName       string
	KeyName        string
	TLSOpts        []func(*tls.Config)
	ListenConfig   net.ListenConfig
	HandlerOpts    any
}

// Server represents a metrics server.
type Server interface {
	// AddExtraHandler has no effect.
	AddExtraHandler(path string, handler http.Handler) error
	// NeedLeaderElection returns false.
	NeedLeaderElection() bool
	// Start waits until ctx is done.
	Start(ctx context.Context) error
}

// NewServer returns a server that does not serve.
func NewServer(Options, *rest.Config, *http.Client) (Server, error) { return server{}, nil }

type server struct{}

// AddExtraHandler implements Server.
func (server) AddExtraHandler(string, http.Handler) error { return nil }

// NeedLeaderElection implements Server.
func (server) NeedLeaderElection() bool { return false }

// Start implements Server.
func (server) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
