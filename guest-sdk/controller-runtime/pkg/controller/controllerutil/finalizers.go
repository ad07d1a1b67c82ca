// SPDX-License-Identifier: Apache-2.0

// Package controllerutil has helper functions for reconcilers: create or
// update, owner references, finalizers.
package controllerutil

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AddFinalizer adds a finalizer to o, and reports whether it was missing.
func AddFinalizer(o client.Object, finalizer string) (finalizersUpdated bool) {
	if ContainsFinalizer(o, finalizer) {
		return false
	}
	o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	return true
}

// RemoveFinalizer removes a finalizer from o, and reports whether it was
// present.
func RemoveFinalizer(o client.Object, finalizer string) (finalizersUpdated bool) {
	had := o.GetFinalizers()
	left := slices.DeleteFunc(slices.Clone(had), func(f string) bool { return f == finalizer })
	if len(left) == len(had) {
		return false
	}
	o.SetFinalizers(left)
	return true
}

// ContainsFinalizer reports whether o has a finalizer.
func ContainsFinalizer(o client.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}
