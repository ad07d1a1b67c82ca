// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_rest && wasip1

package rest

import (
	"net/http"
	"strings"
)

// Clients whose configuration client-go has found in the cluster use the
// default transport instead of the transport of the host.
func init() {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.RegisterProtocol("http", toHost{})
	}
}

// toHost answers requests to the host, and refuses all others.
type toHost struct{ transport }

// RoundTrip implements http.RoundTripper.
func (t toHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != strings.TrimPrefix(hostURL, "http://") {
		return nil, http.ErrSkipAltProtocol
	}
	return t.transport.RoundTrip(r)
}
