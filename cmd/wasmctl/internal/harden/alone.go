// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package harden

import (
	"os"

	"golang.org/x/sys/unix"
)

// rule permits a system call: with any arguments, with some values of one argument, or with a bit
// of it set.
type rule struct {
	number uint32
	arg    uint32   // the argument that is checked
	values []uint32 // its permitted values; if empty, any
	bit    uint32   // a bit that it must have
}

// calls are the system calls that Go's runtime and a process without network, programs and
// children make, and with cgo those of the C library. docs/isolation.md lists them.
var calls = append([]uint32{
	// memory
	unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE,
	// threads, their signal handlers, and the end of the process
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	unix.SYS_SIGALTSTACK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// clocks and random numbers
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_GETRANDOM,
	// files that Landlock permits, and the connections to the parent
	unix.SYS_OPENAT, unix.SYS_CLOSE, unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_LSEEK,
	unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_UNAME,
	unix.SYS_RECVMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PPOLL,
}, callsHere...)

// writes are the calls of a process that also writes files.
var writes = []uint32{
	unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_MKDIRAT, unix.SYS_RENAMEAT, unix.SYS_UNLINKAT,
}

// aloneRules returns the rules for a process that is alone. It starts threads, but no processes. It
// sends signals to itself, as Go does to interrupt a thread, and to no other process, also not as
// the owner of a descriptor (F_SETOWN). It changes no priorities or limits, not even its own.
func aloneRules(files bool) []rule {
	self := []uint32{uint32(os.Getpid())} //nolint:gosec // not negative
	rules := []rule{
		{number: unix.SYS_CLONE, bit: unix.CLONE_THREAD},
		{number: unix.SYS_KILL, values: self},
		{number: unix.SYS_TGKILL, values: self},
		{number: unix.SYS_FCNTL, arg: 1, values: []uint32{unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD_CLOEXEC}},
		{number: unix.SYS_PRCTL, values: []uint32{unix.PR_SET_VMA}}, // names memory
	}
	for _, number := range calls {
		rules = append(rules, rule{number: number})
	}
	if files {
		for _, number := range writes {
			rules = append(rules, rule{number: number})
		}
	}
	return rules
}
