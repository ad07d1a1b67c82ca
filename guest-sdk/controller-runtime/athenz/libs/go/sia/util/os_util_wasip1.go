package util

import (
	"errors"
	"io"
	"os"
)

// NewSysLogger returns an error: a module has no log of the system.
func NewSysLogger() (io.Writer, error) { return nil, errors.ErrUnsupported }

// UpdateFile returns an error: the files of a module are read only.
func UpdateFile(string, []byte, int, int, os.FileMode, bool, bool) error {
	return errors.ErrUnsupported
}

// SvcAttrs returns no user, no group, and the mode of a file that only the user reads.
func SvcAttrs(string, string) (uid, gid, mode int) { return -1, -1, 0o440 }

// UidGidForUserGroup returns no user and no group.
func UidGidForUserGroup(string, string) (uid, gid int) { return -1, -1 } //nolint:revive // the library's name

// SetupSIADirs returns an error: the files of a module are read only.
func SetupSIADirs(string, string, int, int) error { return errors.ErrUnsupported }

// SyscallSetGid returns an error: a module has no group.
func SyscallSetGid(int) error { return errors.ErrUnsupported }

// SyscallSetUid returns an error: a module has no user.
func SyscallSetUid(int) error { return errors.ErrUnsupported }

func setupDirOwnership(string, int, int) {} //nolint:unused // by the library

func validateScriptArguments([]string) bool { return false } //nolint:unused // by the library
