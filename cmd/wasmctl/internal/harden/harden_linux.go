// SPDX-License-Identifier: Apache-2.0

package harden

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// apply restricts all threads, one part after the other. The parts are independent, except that the
// kernel requires no_new_privs first.
func apply(p *Policy, s *State) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.add("not dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)) // for the process
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)             // for this thread
	synced := restrictCalls(p)
	if synced != nil && err == nil { // seccomp would have set it for the other threads
		err = onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	}
	s.add("no_new_privs", err)
	s.add("seccomp", synced)
	if !p.AnyFile {
		version, err := restrictFiles(p)
		part := "landlock"
		if err == nil {
			part = fmt.Sprintf("landlock v%d", version)
		}
		s.add(part, err)
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
