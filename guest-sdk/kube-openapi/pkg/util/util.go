// Package util has the interface of types that name their model.
package util

// OpenAPIModelNamer is a type that names its model.
type OpenAPIModelNamer interface {
	// OpenAPIModelName returns the name.
	OpenAPIModelName() string
}
