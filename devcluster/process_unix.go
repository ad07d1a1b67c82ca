// SPDX-License-Identifier: Apache-2.0

//go:build unix

package devcluster

import "syscall"

// ownGroup makes a child start its own process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
