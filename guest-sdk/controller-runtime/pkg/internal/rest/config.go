//go:build !wasmctl_rest && wasip1

// Package rest has what the stand-in knows of client-go's package of that name:
// little, or that package itself where the program uses it anyway.
package rest

import (
	"errors"
	"net/http"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Config stands for the *rest.Config of client-go in a program that does not use
// that package, which is as large as half of the program. Its fields are those that
// programs set, and have no effect.
type Config struct {
	// Host is the name of the controller's host.
	Host string
	// UserAgent, QPS, Burst and Timeout are set by the host.
	UserAgent string
	QPS       float32
	Burst     int
	Timeout   time.Duration

	// RateLimiter, the handlers of warnings and the content types are the host's too.
	RateLimiter               any
	WarningHandler            any
	WarningHandlerWithContext any
	ContentType               string
	AcceptContentTypes        string
	DisableCompression        bool

	client func() *wasmctl.Client
}

// New returns the configuration of the host.
func New() *Config { return &Config{} }

// For returns one whose client is that of each call, instead of that of the host:
// package fake has it.
func For(client func() *wasmctl.Client) *Config { return &Config{client: client} }

// ClientOf returns the client of For; nil for that of the host.
func ClientOf(c *Config) func() *wasmctl.Client { return c.client }

// HTTPClient returns a client that reaches nothing.
func HTTPClient(*Config) *http.Client { return &http.Client{Transport: noTransport{}} }

type noTransport struct{}

// RoundTrip implements http.RoundTripper.
func (noTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("manager: a module has no network; use the client of the manager")
}

// Check returns nil: there is nothing that such a configuration could ask for.
func Check(*Config) error { return nil }
