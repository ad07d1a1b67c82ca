// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"os"
)

// The files of a module are read only, so a database in files cannot be opened. One in memory can.

func newFileLock(string, bool) (fileLock, error) { return nil, errors.ErrUnsupported } //nolint:unused // the library calls it

func rename(from, to string) error { return os.Rename(from, to) } //nolint:unused // the library calls it

func syncDir(string) error { return nil } //nolint:unused // the library calls it
