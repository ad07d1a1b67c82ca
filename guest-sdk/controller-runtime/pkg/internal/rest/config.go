// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_rest && wasip1

// Package rest replaces client-go's package of that name by a small subset, for
// programs that do not use that package.
package rest

import (
	"errors"
	"net/http"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Config replaces the *rest.Config of client-go in programs that do not use
// that package, which would add half the size of the program. It has the fields
// that programs set; they have no effect.
type Config struct {
	// Host is the name of the API server's host.
	Host string
	// UserAgent, QPS, Burst and Timeout are set by the host.
	UserAgent string
	QPS       float32
	Burst     int
	Timeout   time.Duration

	// RateLimiter, the warning handlers and the content types are set by the
	// host, too.
	RateLimiter               any
	WarningHandler            any
	WarningHandlerWithContext any
	ContentType               string
	AcceptContentTypes        string
	DisableCompression        bool

	client func() *wasmctl.Client
}

// New returns the configuration for the host.
func New() *Config { return &Config{} }

// For returns a configuration that calls the client returned by client, instead
// of the host. Package fake uses it.
func For(client func() *wasmctl.Client) *Config { return &Config{client: client} }

// ClientOf returns the client function given to For, or nil for the host.
func ClientOf(c *Config) func() *wasmctl.Client { return c.client }

// HTTPClient returns a client whose requests fail.
func HTTPClient(*Config) *http.Client { return &http.Client{Transport: noTransport{}} }

type noTransport struct{}

// RoundTrip implements http.RoundTripper.
func (noTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("manager: a module has no network; use the client of the manager")
}

// Check returns nil, because the fields of this configuration have no effect.
func Check(*Config) error { return nil }
