// SPDX-License-Identifier: Apache-2.0

// Package conversion has the interfaces of kinds with several versions.
package conversion

import "k8s.io/apimachinery/pkg/runtime"

// Hub is the version that all other versions convert to and from.
type Hub interface {
	runtime.Object
	// Hub marks the type.
	Hub()
}

// Convertible is any other version.
type Convertible interface {
	runtime.Object
	// ConvertTo writes this object into dst.
	ConvertTo(dst Hub) error
	// ConvertFrom reads this object from src.
	ConvertFrom(src Hub) error
}
