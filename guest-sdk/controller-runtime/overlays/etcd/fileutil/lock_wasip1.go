// SPDX-License-Identifier: Apache-2.0

package fileutil

import (
	"errors"
	"os"
)

// flockTryLockFile returns an error: a module cannot lock files.
func flockTryLockFile(string, int, os.FileMode) (*LockedFile, error) { //nolint:unused // the library calls it
	return nil, errors.ErrUnsupported
}

// flockLockFile returns an error: a module cannot lock files.
func flockLockFile(string, int, os.FileMode) (*LockedFile, error) { //nolint:unused // the library calls it
	return nil, errors.ErrUnsupported
}
