package providers

import "errors"

// lockFile returns an error: a module has no files that another process has.
func lockFile(int) error { return errors.ErrUnsupported } //nolint:unused // by the library

// unlockFile returns an error: nothing is locked.
func unlockFile(int) error { return errors.ErrUnsupported } //nolint:unused // by the library
