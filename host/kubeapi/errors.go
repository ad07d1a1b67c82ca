package kubeapi

import (
	"errors"
	"strings"
)

// Errors of this package; match them with errors.Is.
var (
	// ErrBadKindName says that a name cannot be the name of a kind.
	ErrBadKindName = errors.New("not the name of a kind")
	// ErrUnknownKind says that the API server does not have a kind. It is an
	// *UnknownKindError.
	ErrUnknownKind = errors.New("the API server does not have this kind")
	// ErrAmbiguousKind says that a name means kinds of several groups. It is an
	// *AmbiguousKindError.
	ErrAmbiguousKind = errors.New("several groups have this kind")
	// ErrUnavailable says that the API server cannot be reached or is not ready;
	// another try may help.
	ErrUnavailable = errors.New("the API server cannot be reached")
)

// UnknownKindError is ErrUnknownKind with what may help.
type UnknownKindError struct {
	// Name is the kind as it was asked for.
	Name string
	// Near names kinds that may have been meant, the likeliest first; may be
	// empty.
	Near []string
	// MayArrive says that the kind is named in full and its group is not one
	// that comes with Kubernetes: a CustomResourceDefinition may bring it.
	MayArrive bool
}

// Error implements error.
func (e *UnknownKindError) Error() string {
	s := "kind[" + e.Name + "]: " + ErrUnknownKind.Error()
	if len(e.Near) > 0 {
		s += "; did you mean " + orList(e.Near) + "?"
	}
	return s
}

// Is makes errors.Is(err, ErrUnknownKind) true.
func (e *UnknownKindError) Is(target error) bool { return target == ErrUnknownKind }

// AmbiguousKindError is ErrAmbiguousKind with the choices.
type AmbiguousKindError struct {
	// Name is the kind as it was asked for.
	Name string
	// Choices names each kind that it may mean, in a form that Resolve takes.
	Choices []string
}

// Error implements error.
func (e *AmbiguousKindError) Error() string {
	return "kind[" + e.Name + "]: " + ErrAmbiguousKind.Error() + ": name one of " + strings.Join(e.Choices, ", ")
}

// Is makes errors.Is(err, ErrAmbiguousKind) true.
func (e *AmbiguousKindError) Is(target error) bool { return target == ErrAmbiguousKind }

// orList returns "a", "a or b", "a, b or c".
func orList(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
