// Package rest has what the stand-in knows of client-go's package of that name.
package rest

import (
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Config stands for the *rest.Config of client-go, which a module does not have:
// the host talks to the API server. Its fields are those that programs set, and
// have no effect. It is a type of its own so that a use as client-go's, for
// another client, does not compile.
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

	// Client returns the client of each call, instead of that of the host: package
	// fake sets it.
	Client func() *wasmctl.Client
}
