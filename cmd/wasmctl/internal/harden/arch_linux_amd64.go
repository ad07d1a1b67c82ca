// SPDX-License-Identifier: Apache-2.0

package harden

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

var neverHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_MKNOD, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS__SYSCTL}

// callsHere are the calls in addition to calls.
var callsHere = []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT, unix.SYS_POLL}
