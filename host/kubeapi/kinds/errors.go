// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"strings"
)

// Errors of this package, for errors.Is.
var (
	// ErrBadName means that a name cannot be the name of a kind.
	ErrBadName = errors.New("not a kind name")
	// ErrUnknown means that the API server does not have a kind. The error is an *UnknownError.
	ErrUnknown = errors.New("the API server does not know this kind")
	// ErrAmbiguous means that a name matches kinds of several groups. The error is an
	// *AmbiguousError.
	ErrAmbiguous = errors.New("the kind exists in several groups")
	// ErrUnavailable means that the API server cannot be reached or is not ready. A retry may help.
	ErrUnavailable = errors.New("the API server is unreachable")
)

// UnknownError is ErrUnknown with suggestions.
type UnknownError struct {
	// Name is the requested kind.
	Name string
	// Near names similar kinds, the likeliest first. It may be empty.
	Near []string
	// MayArrive means that the name is complete and that its group is not part of Kubernetes, so
	// that a CustomResourceDefinition may add the kind.
	MayArrive bool
}

// Error implements error.
func (e *UnknownError) Error() string {
	s := "kind[" + e.Name + "]: " + ErrUnknown.Error()
	if len(e.Near) > 0 {
		s += "; did you mean " + orList(e.Near) + "?"
	}
	return s
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// AmbiguousError is ErrAmbiguous with the choices.
type AmbiguousError struct {
	// Name is the requested kind.
	Name string
	// Choices names each matching kind, in a form that Resolve accepts.
	Choices []string
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return "kind[" + e.Name + "]: " + ErrAmbiguous.Error() + ": name one of " + strings.Join(e.Choices, ", ")
}

// Is makes errors.Is(err, ErrAmbiguous) true.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// orList returns "a", "a or b", "a, b or c".
func orList(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
