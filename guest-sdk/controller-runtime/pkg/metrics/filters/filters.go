// SPDX-License-Identifier: Apache-2.0

// Package filters has the filter of the metrics server, which a module does not
// have.
package filters

import (
	"net/http"

	"github.com/go-logr/logr"

	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// WithAuthenticationAndAuthorization returns a filter without an effect,
// because there is no server to protect.
func WithAuthenticationAndAuthorization(*rest.Config, *http.Client) (server.Filter, error) {
	return func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return handler, nil }, nil
}
