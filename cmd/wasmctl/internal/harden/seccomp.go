// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package harden

import (
	"errors"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// never are system calls that our programs do not make, and that attackers have used to escape from
// containers and sandboxes.
var never = append([]uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY, unix.SYS_PERSONALITY, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_MKNODAT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, neverHere...)

// alone are system calls that a process without network and children does not make.
var alone = []uint32{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
}

// Offsets in seccomp_data.
const (
	numberAt = 0
	archAt   = 4
	secondAt = 24 // the lower half of the second argument
)

// maxNumber is above the numbers of this system, and below those of x32, which has other numbers
// for the same calls.
const maxNumber = 0x40000000

// filter returns a program that refuses calls with EPERM, and kills the process for calls of
// another architecture. If sealed is set, a memory file must be one that can never be executed.
func filter(refused []uint32, sealed bool) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atMost = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		hasBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
	)
	refuse := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	p := []unix.SockFilter{
		{Code: load, K: archAt},
		{Code: equal, K: arch, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: numberAt},
		{Code: atMost, K: maxNumber, Jf: 1},
		refuse,
	}
	for _, number := range refused {
		p = append(p, unix.SockFilter{Code: equal, K: number, Jf: 1}, refuse)
	}
	allow := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}
	if sealed { // the last check, because the flags replace the number
		p = append(p, unix.SockFilter{Code: equal, K: unix.SYS_MEMFD_CREATE, Jf: 3}, unix.SockFilter{Code: load, K: secondAt},
			unix.SockFilter{Code: hasBit, K: unix.MFD_NOEXEC_SEAL, Jt: 1}, refuse)
	}
	return append(p, allow)
}

// restrictCalls refuses system calls on all threads, including those of cgo.
func restrictCalls(policy *Policy) error {
	refused := slices.Clone(never)
	if policy.Alone {
		refused = append(refused, alone...)
	}
	if !policy.AnyFile && policy.Alone {
		refused = append(refused, unix.SYS_MEMFD_CREATE)
	}
	p := filter(refused, !policy.AnyFile)                                                                                                            // no memory file may stand in for a program that Landlock refuses
	program := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}                                                                                    //nolint:gosec // some hundred instructions
	bad, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))) //nolint:gosec // as the kernel wants it
	switch {
	case errno != 0:
		return os.NewSyscallError("seccomp", errno)
	case bad != 0:
		return errors.New("a thread has a filter of its own")
	}
	return nil
}
