// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package devcluster

import "syscall"

// ownGroup does nothing on systems without process groups.
func ownGroup() *syscall.SysProcAttr { return nil }
