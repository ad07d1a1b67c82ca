// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_rest || !wasip1

// Package rest replaces client-go's package of that name by a small subset.
// With this build tag it uses that package itself. wasmctl build sets the tag
// if the program uses the package anyway.
package rest

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// hostURL represents the host of the module. wasmctl build changes client-go's
// InClusterConfig so that it returns a configuration with this URL.
const hostURL = "http://wasmctl.invalid"

// Config is client-go's.
type Config = rest.Config

// Serve answers a request of a client of client-go. Package manager sets it,
// and a manager replaces it when it knows its kinds.
var Serve func(*http.Request) (*http.Response, error)

// New returns the configuration for the host. Clients with this configuration
// call the host.
func New() *Config { return For(nil) }

// For returns a configuration that calls the client returned by client, instead
// of the host. Package fake uses it.
func For(client func() *wasmctl.Client) *Config {
	// A module has no protobuf code, which clients would prefer by default.
	const json = "application/json"
	return &rest.Config{
		Host: hostURL, Transport: &transport{client},
		ContentConfig: rest.ContentConfig{ContentType: json, AcceptContentTypes: json},
	}
}

// ClientOf returns the client function given to For, or nil for the host.
func ClientOf(c *Config) func() *wasmctl.Client {
	if t, ok := c.Transport.(*transport); ok {
		return t.client
	}
	return nil
}

// HTTPClient returns the client for requests with a configuration.
func HTTPClient(c *Config) *http.Client { return &http.Client{Transport: c.Transport} }

// Check returns an error for a configuration that needs more than the host
// offers.
func Check(c *Config) error {
	_, own := c.Transport.(*transport)
	switch {
	case !own && c.Host != "" && c.Host != hostURL:
		return fmt.Errorf("config[%s]: not the configuration of ctrl.GetConfig: a module works in the cluster of its host; for other clusters, run the operator's own binary", c.Host)
	case c.Impersonate.UserName != "":
		return fmt.Errorf("config: impersonates %q: a module has the rights of its grant, and cannot act as another user", c.Impersonate.UserName)
	}
	return nil
}

type transport struct{ client func() *wasmctl.Client }

// RoundTrip implements http.RoundTripper.
func (*transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if user := r.Header.Get("Impersonate-User"); user != "" {
		return nil, fmt.Errorf("client-go: impersonates %q: a module has the rights of its grant, and cannot act as another user", user)
	}
	if r.URL.Path == "/version" {
		return serverVersion(r), nil
	}
	if Serve == nil {
		return nil, errors.New("client-go: the program has no manager, which carries out requests in a module")
	}
	return Serve(r)
}
