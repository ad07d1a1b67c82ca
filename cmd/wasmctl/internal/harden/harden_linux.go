// SPDX-License-Identifier: Apache-2.0

package harden

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// apply restricts all threads, one part after the other. The kernel requires no_new_privs first.
// Seccomp comes last, because the others make system calls that it may refuse.
func apply(p *Policy, s *State) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.add("not dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)) // for the process
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)             // for this thread
	others := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	var version int
	var files error
	if !p.AnyFile {
		version, files = restrictFiles(p)
	}
	synced := restrictCalls(p)
	if synced != nil && err == nil { // seccomp sets it for the other threads, also those of cgo
		err = others
	}
	s.add("no_new_privs", err)
	s.add("seccomp", synced)
	if !p.AnyFile {
		part := "landlock"
		if files == nil {
			part = fmt.Sprintf("landlock v%d", version)
		}
		s.add(part, files)
	}
}

// onAllThreads makes a system call on each of Go's threads. With cgo, there may be other threads,
// so it fails.
func onAllThreads(call, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(call, a, b, c)
	if errno == 0 {
		return nil
	}
	if errno == syscall.ENOTSUP {
		return errors.New("the program was built with cgo: build it with CGO_ENABLED=0")
	}
	return errno
}
