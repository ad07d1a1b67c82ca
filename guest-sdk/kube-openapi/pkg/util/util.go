// SPDX-License-Identifier: Apache-2.0

// Package util has the interface of types that know the name of their model.
package util

// OpenAPIModelNamer is a type that knows the name of its model.
type OpenAPIModelNamer interface {
	// OpenAPIModelName returns the name.
	OpenAPIModelName() string
}
