package wire

// PathError says where in a value an error is.
type PathError struct {
	// Path is the way from the root, with dots between.
	Path string
	Err  error
}

// Error implements error.
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong there.
func (e *PathError) Unwrap() error { return e.Err }

// within puts a step before the path of err.
func within(step string, err error) error {
	if p, ok := err.(*PathError); ok { //nolint:errorlint // only the outermost has the path
		return &PathError{Path: step + "." + p.Path, Err: p.Err}
	}
	return &PathError{Path: step, Err: err}
}
