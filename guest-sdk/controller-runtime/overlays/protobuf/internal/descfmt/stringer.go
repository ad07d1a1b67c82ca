// SPDX-License-Identifier: Apache-2.0

// Package descfmt formats descriptors of protobuf.
package descfmt

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// FormatList writes the length of a list of descriptors.
func FormatList(s fmt.State, _ rune, list interface{ Len() int }) {
	_, _ = fmt.Fprintf(s, "%T of %d", list, list.Len())
}

// FormatDesc writes the name of a descriptor. It does not list its properties:
// a program that looks up methods by such names keeps all methods of all types.
func FormatDesc(s fmt.State, _ rune, d protoreflect.Descriptor) {
	_, _ = fmt.Fprintf(s, "%T{%s}", d, d.FullName())
}
