// SPDX-License-Identifier: Apache-2.0

package harden

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

var neverHere []uint32

// callsHere are the calls in addition to calls.
var callsHere []uint32
