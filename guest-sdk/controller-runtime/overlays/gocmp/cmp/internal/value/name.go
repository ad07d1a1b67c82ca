// SPDX-License-Identifier: Apache-2.0

// Package value names types for go-cmp.
package value

import "reflect"

// TypeString returns the name of a type. It does not list the methods of unnamed interfaces:
// a program that looks up methods by reflection keeps all methods of all types.
func TypeString(t reflect.Type, qualified bool) string {
	if qualified && t.Name() != "" && t.PkgPath() != "" {
		return t.PkgPath() + "." + t.Name()
	}
	return t.String()
}
