package kinds

import (
	"errors"
	"strings"
)

// Errors of this package; match them with errors.Is.
var (
	// ErrBadName says that a name cannot be the name of a kind.
	ErrBadName = errors.New("not a kind name")
	// ErrUnknown says that the API server does not have a kind. It is an
	// *UnknownError.
	ErrUnknown = errors.New("the API server does not know this kind")
	// ErrAmbiguous says that a name means kinds of several groups. It is an
	// *AmbiguousError.
	ErrAmbiguous = errors.New("the kind exists in several groups")
	// ErrUnavailable says that the API server cannot be reached or is not ready;
	// asking again may help.
	ErrUnavailable = errors.New("the API server is unreachable")
)

// UnknownError is ErrUnknown with what may help.
type UnknownError struct {
	// Name is the requested kind.
	Name string
	// Near names kinds that may have been meant, the likeliest first; may be
	// empty.
	Near []string
	// MayArrive says that the kind is named in full and its group is not one
	// that comes with Kubernetes: a CustomResourceDefinition may bring it.
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
	// Choices names each kind that it may mean, in a form that Resolve takes.
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
