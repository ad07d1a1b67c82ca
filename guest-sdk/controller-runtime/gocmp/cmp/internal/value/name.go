// Package value names types for go-cmp.
package value

import "reflect"

// TypeString names a type. It does not list the methods of an interface without a name:
// a program that asks for methods by reflection keeps those of all types.
func TypeString(t reflect.Type, qualified bool) string {
	if qualified && t.Name() != "" && t.PkgPath() != "" {
		return t.PkgPath() + "." + t.Name()
	}
	return t.String()
}
