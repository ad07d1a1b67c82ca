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

// NewDynamicRESTMapper returns a mapper that guesses: a module cannot ask the API
// server what it has.
func NewDynamicRESTMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return kinds.NewMapper(runtime.NewScheme()), nil
}

// NewDiscoveryRESTMapper is NewDynamicRESTMapper: it asks no API server either.
func NewDiscoveryRESTMapper(c *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	return NewDynamicRESTMapper(c, httpClient)
}

// ErrResourceDiscoveryFailed says which versions of which groups the API server could
// not tell about. A module does not ask.
type ErrResourceDiscoveryFailed map[schema.GroupVersion]error

// Error implements error.
func (e *ErrResourceDiscoveryFailed) Error() string {
	return fmt.Sprintf("discovery failed: %v", e.Unwrap())
}

// Unwrap returns the errors of all versions.
func (e *ErrResourceDiscoveryFailed) Unwrap() []error { return slices.Collect(maps.Values(*e)) }
