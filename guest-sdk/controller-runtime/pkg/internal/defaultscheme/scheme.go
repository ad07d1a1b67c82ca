// SPDX-License-Identifier: Apache-2.0

// Package defaultscheme finds client-go's scheme with all kinds of Kubernetes,
// if the program includes it.
package defaultscheme

import (
	"errors"
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/runtime"
)

// linked is the variable of client-go's package kubernetes/scheme if the
// program imports that package, and otherwise nil: the linker merges the two
// declarations into one variable. An import here would add the complete scheme
// to each module.
//
//go:linkname linked k8s.io/client-go/kubernetes/scheme.Scheme
var linked *runtime.Scheme

// ErrNone is the error of options without a scheme, if the program does not
// include client-go's.
var ErrNone = errors.New("Options.Scheme is nil: set the one that main made, or add to main.go: " +
	`import _ "k8s.io/client-go/kubernetes/scheme", whose scheme is then the default (the module gets larger by 8 MB)`)

// Get returns client-go's scheme, or nil if the program does not include it.
func Get() *runtime.Scheme { return linked }
