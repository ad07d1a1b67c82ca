// SPDX-License-Identifier: Apache-2.0

package harden

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights to files, by use.
const (
	readFile   = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readAll    = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	executeOne = readFile | unix.LANDLOCK_ACCESS_FS_EXECUTE
	writeFile  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeAll   = readAll | writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER
	// ofFiles are the rights that a rule for a file, instead of a folder, may have.
	ofFiles = readFile | writeFile | unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// handled returns the rights that a version of Landlock knows.
func handled(version int) uint64 {
	rights := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1) // version 1
	if version >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// restrictFiles limits this process to the files of a policy, and returns the version of Landlock.
func restrictFiles(p *Policy) (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	version := int(v)
	if errno != 0 {
		return 0, fmt.Errorf("the kernel does not have it: %w", errno)
	}
	attr, size := unix.LandlockRulesetAttr{Access_fs: handled(version)}, unsafe.Sizeof(uint64(0))
	if attr.Scoped = scopes(p, version); attr.Scoped != 0 {
		size = unsafe.Sizeof(attr)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // as the kernel wants it
	if errno != 0 {
		return version, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer func() { _ = unix.Close(int(ruleset)) }()
	execute := slices.Clone(p.Execute)
	if p.Self {
		execute = append(execute, ownProgram()...)
	}
	for _, part := range []struct {
		paths  []string
		rights uint64
	}{{p.Read, readAll}, {p.Write, writeAll}, {execute, executeOne}} {
		for _, path := range part.paths {
			if err := allow(int(ruleset), path, part.rights&attr.Access_fs); err != nil {
				return version, err
			}
		}
	}
	return version, onAllThreads(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
}

// scopes returns the scopes of a process that is alone: it reaches no abstract socket of another
// process, and sends no signal to one. Before an erratum of the kernel was corrected, threads could
// not send signals to each other either, which Go needs.
func scopes(p *Policy, version int) uint64 {
	if !p.Alone || version < 6 {
		return 0
	}
	const signalsOfThreads = 1 << 1
	fixed, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if errno != 0 || fixed&signalsOfThreads == 0 {
		return unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
}

// ownProgram returns the binary of this process, even if its file was replaced, and the loader that
// the kernel starts for it, if any.
func ownProgram() []string {
	const self = "/proc/self/exe"
	paths := []string{self}
	f, err := elf.Open(self)
	if err != nil {
		return paths
	}
	defer func() { _ = f.Close() }()
	for _, part := range f.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		if name, err := io.ReadAll(io.LimitReader(part.Open(), unix.PathMax)); err == nil {
			paths = append(paths, strings.TrimRight(string(name), "\x00"))
		}
	}
	return paths
}

// filesError returns the reason why a process of this program cannot be limited to its files.
func filesError() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		return fmt.Errorf("the kernel does not have it: %w", errno)
	}
	return onAllThreads(unix.SYS_GETUID, 0, 0, 0)
}

// allow adds a rule for everything below a path, if the path exists.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}                                                                   //nolint:gosec // a descriptor is small
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // as the kernel wants it
	if errno != 0 {
		return fmt.Errorf("%s: %w", path, os.NewSyscallError("landlock_add_rule", errno))
	}
	return nil
}
