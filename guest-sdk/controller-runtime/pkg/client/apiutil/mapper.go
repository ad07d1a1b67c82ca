// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// NewDynamicRESTMapper returns a mapper that guesses resources, because a
// module cannot query the API server for them.
func NewDynamicRESTMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return kinds.NewMapper(runtime.NewScheme()), nil
}

// NewDiscoveryRESTMapper is NewDynamicRESTMapper. It does not query the API
// server either.
func NewDiscoveryRESTMapper(c *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	return NewDynamicRESTMapper(c, httpClient)
}

// ErrResourceDiscoveryFailed has the errors of group versions for which
// discovery failed. In a module it never occurs.
type ErrResourceDiscoveryFailed map[schema.GroupVersion]error

// Error implements error.
func (e *ErrResourceDiscoveryFailed) Error() string {
	return fmt.Sprintf("discovery failed: %v", e.Unwrap())
}

// Unwrap returns the errors of all versions.
func (e *ErrResourceDiscoveryFailed) Unwrap() []error { return slices.Collect(maps.Values(*e)) }
