// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package harden

import (
	"errors"
	"os"
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

// Offsets in seccomp_data.
const (
	numberAt = 0
	archAt   = 4
	argsAt   = 16 // of the lower half of the first argument; the others follow in steps of 8
)

// maxNumber is above the numbers of this system, and below those of x32, which has other numbers
// for the same calls.
const maxNumber = 0x40000000

// Instructions of the programs.
const (
	bpfLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfHasBit  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfReturn  = unix.BPF_RET | unix.BPF_K
)

var (
	refuse  = unix.SockFilter{Code: bpfReturn, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	permit  = unix.SockFilter{Code: bpfReturn, K: unix.SECCOMP_RET_ALLOW}
	unknown = unix.SockFilter{Code: bpfReturn, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
)

// prologue kills the process for calls of another architecture, and loads the number.
func prologue() []unix.SockFilter {
	return []unix.SockFilter{
		{Code: bpfLoad, K: archAt},
		{Code: bpfEqual, K: arch, Jt: 1},
		{Code: bpfReturn, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: bpfLoad, K: numberAt},
	}
}

// allBut returns a program that refuses the calls in never with EPERM. If sealed is set, a memory
// file must be one that can never be executed.
func allBut(sealed bool) []unix.SockFilter {
	p := append(prologue(), unix.SockFilter{Code: bpfAtLeast, K: maxNumber, Jf: 1}, refuse)
	for _, number := range never {
		p = append(p, unix.SockFilter{Code: bpfEqual, K: number, Jf: 1}, refuse)
	}
	if sealed { // the last check, because the flags replace the number
		p = append(p, unix.SockFilter{Code: bpfEqual, K: unix.SYS_MEMFD_CREATE, Jf: 3}, unix.SockFilter{Code: bpfLoad, K: argsAt + 8},
			unix.SockFilter{Code: bpfHasBit, K: unix.MFD_NOEXEC_SEAL, Jt: 1}, refuse)
	}
	return append(p, permit)
}

// only returns a program that permits the calls of the rules, and refuses all others with EPERM.
func only(rules []rule) []unix.SockFilter {
	p := append(prologue(), unix.SockFilter{Code: bpfEqual, K: unix.SYS_CLONE3, Jf: 1}, unknown) // the C library then uses clone
	for _, r := range rules {
		body := []unix.SockFilter{permit}
		if r.bit != 0 {
			body = []unix.SockFilter{{Code: bpfLoad, K: argsAt + 8*r.arg}, {Code: bpfHasBit, K: r.bit, Jf: 1}, permit, refuse}
		} else if len(r.values) > 0 {
			body = []unix.SockFilter{{Code: bpfLoad, K: argsAt + 8*r.arg}}
			for _, v := range r.values {
				body = append(body, unix.SockFilter{Code: bpfEqual, K: v, Jf: 1}, permit)
			}
			body = append(body, refuse)
		}
		p = append(append(p, unix.SockFilter{Code: bpfEqual, K: r.number, Jf: uint8(len(body))}), body...) //nolint:gosec // some instructions
	}
	return append(p, refuse)
}

// restrictCalls refuses system calls on all threads, including those of cgo.
func restrictCalls(policy *Policy) error {
	p := allBut(!policy.AnyFile) // no memory file may stand in for a program that Landlock refuses
	if policy.Alone {
		p = only(aloneRules(len(policy.Write) > 0))
	}
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
