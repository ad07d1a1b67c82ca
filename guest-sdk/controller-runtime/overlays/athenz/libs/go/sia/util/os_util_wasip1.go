// SPDX-License-Identifier: Apache-2.0

package util

import (
	"errors"
	"io"
	"os"
)

// NewSysLogger returns an error: a module has no system log.
func NewSysLogger() (io.Writer, error) { return nil, errors.ErrUnsupported }

// UpdateFile returns an error: a module's files are read-only.
func UpdateFile(string, []byte, int, int, os.FileMode, bool, bool) error {
	return errors.ErrUnsupported
}

// SvcAttrs returns no user, no group, and the mode of a file that others cannot read.
func SvcAttrs(string, string) (uid, gid, mode int) { return -1, -1, 0o440 }

// UidGidForUserGroup returns no user and no group.
func UidGidForUserGroup(string, string) (uid, gid int) { return -1, -1 } //nolint:revive // the library's name

// SetupSIADirs returns an error: a module's files are read-only.
func SetupSIADirs(string, string, int, int) error { return errors.ErrUnsupported }

// SyscallSetGid returns an error: a module has no group.
func SyscallSetGid(int) error { return errors.ErrUnsupported }

// SyscallSetUid returns an error: a module has no user.
func SyscallSetUid(int) error { return errors.ErrUnsupported }

func setupDirOwnership(string, int, int) {} //nolint:unused // the library calls it

func validateScriptArguments([]string) bool { return false } //nolint:unused // the library calls it
