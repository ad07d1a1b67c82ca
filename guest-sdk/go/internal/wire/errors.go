// SPDX-License-Identifier: Apache-2.0

package wire

// PathError adds the place of an error within a value.
type PathError struct {
	// Path has the keys from the root, separated by dots.
	Path string
	Err  error
}

// Error implements error.
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the error without its path.
func (e *PathError) Unwrap() error { return e.Err }

// within adds a step at the front of the path of err.
func within(step string, err error) error {
	if p, ok := err.(*PathError); ok { //nolint:errorlint // only the outermost error has the path
		return &PathError{Path: step + "." + p.Path, Err: p.Err}
	}
	return &PathError{Path: step, Err: err}
}
