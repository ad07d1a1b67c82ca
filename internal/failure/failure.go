// SPDX-License-Identifier: Apache-2.0

// Package failure assigns errors to classes that determine what a user can do about them. The command maps classes to exit codes; the root
// package exports them as its typed errors.
package failure

import "errors"

// Class is a class of errors. It is an error itself, for errors.Is.
type Class string

// The classes.
const (
	Usage   Class = "invalid option or argument"
	Module  Class = "the module cannot be loaded"
	Cluster Class = "cluster unavailable"
	Kind    Class = "kind unknown to the API server"
	Denied  Class = "missing right"
	Forced  Class = "stopped by force"
	Lost    Class = "lease lost"
	Listen  Class = "cannot listen on the address"
	Differs Class = "the modules differ"
	// Registry means that a registry does not answer; its contents may be fine.
	Registry Class = "registry unreachable"
)

// Error implements error.
func (c Class) Error() string { return string(c) }

// Wrap returns an error that matches the class and has the text of err. It returns nil if err is nil.
func (c Class) Wrap(err error) error { return As(err, c) }

// As returns an error that matches target and has the text of err. It returns nil if err is nil.
func As(err, target error) error {
	if err == nil {
		return nil
	}
	return &matching{err, target}
}

// Of returns the innermost class of err, which is the most specific one, or "" if it has none.
func Of(err error) Class {
	var class Class
	for m := (*matching)(nil); errors.As(err, &m); err = m.error {
		if c, ok := m.target.(Class); ok { //nolint:errorlint // a class is never wrapped
			class = c
		}
	}
	return class
}

// matching is an error that matches another error without including its text.
type matching struct {
	error

	target error
}

// Is reports whether the error matches target.
func (m *matching) Is(target error) bool { return target == m.target }
func (m *matching) Unwrap() error        { return m.error }
