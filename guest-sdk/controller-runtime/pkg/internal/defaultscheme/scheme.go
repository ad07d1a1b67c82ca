// Package defaultscheme has client-go's scheme of all kinds of Kubernetes, if the
// program has it.
package defaultscheme

import (
	"errors"
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/runtime"
)

// linked is the variable of client-go's package kubernetes/scheme where the program
// imports that package, and nil elsewhere: the linker takes the two declarations for
// one variable. An import here would make each module larger by the whole scheme.
//
//go:linkname linked k8s.io/client-go/kubernetes/scheme.Scheme
var linked *runtime.Scheme

// ErrNone is the error of options without a scheme, in a program without that one.
var ErrNone = errors.New("Options.Scheme is nil: set the one that main made, or add to main.go: " +
	`import _ "k8s.io/client-go/kubernetes/scheme", whose scheme is then the default (the module gets larger by 8 MB)`)

// Get returns client-go's scheme, or nil.
func Get() *runtime.Scheme { return linked }
