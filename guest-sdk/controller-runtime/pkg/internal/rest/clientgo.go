//go:build wasmctl_rest || !wasip1

// Package rest has what the stand-in knows of client-go's package of that name:
// little, or that package itself where the program uses it anyway. wasmctl build
// sets the tag then.
package rest

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// hostURL stands for the host of the module. wasmctl build makes client-go's InClusterConfig
// return a configuration with it.
const hostURL = "http://wasmctl.invalid"

// Config is client-go's.
type Config = rest.Config

// Serve answers a request of a client of client-go. Package manager sets it, and a
// manager once it knows its kinds.
var Serve func(*http.Request) (*http.Response, error)

// New returns the configuration of the host: clients that are made with it call
// the host.
func New() *Config { return For(nil) }

// For returns one whose client is that of each call, instead of that of the host:
// package fake has it.
func For(client func() *wasmctl.Client) *Config {
	// A module has no protobuf code, which clients prefer if nothing is said.
	const json = "application/json"
	return &rest.Config{
		Host: hostURL, Transport: &transport{client},
		ContentConfig: rest.ContentConfig{ContentType: json, AcceptContentTypes: json},
	}
}

// ClientOf returns the client of For; nil for that of the host.
func ClientOf(c *Config) func() *wasmctl.Client {
	if t, ok := c.Transport.(*transport); ok {
		return t.client
	}
	return nil
}

// HTTPClient returns the client for requests with a configuration.
func HTTPClient(c *Config) *http.Client { return &http.Client{Transport: c.Transport} }

// Check returns an error for a configuration that asks for more than the host does.
func Check(c *Config) error {
	_, own := c.Transport.(*transport)
	switch {
	case !own && c.Host != "" && c.Host != hostURL:
		return fmt.Errorf("config[%s]: is not that of ctrl.GetConfig: a module works in the cluster of its host; run the operator's own binary for others", c.Host)
	case c.Impersonate.UserName != "":
		return fmt.Errorf("config: impersonates %q: a module has the rights of its grant, and acts as nobody else", c.Impersonate.UserName)
	}
	return nil
}

type transport struct{ client func() *wasmctl.Client }

// RoundTrip implements http.RoundTripper.
func (*transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if user := r.Header.Get("Impersonate-User"); user != "" {
		return nil, fmt.Errorf("client-go: impersonates %q: a module has the rights of its grant, and acts as nobody else", user)
	}
	if r.URL.Path == "/version" {
		return serverVersion(r), nil
	}
	if Serve == nil {
		return nil, errors.New("client-go: the program has no manager, which carries out requests in a module")
	}
	return Serve(r)
}
