// SPDX-License-Identifier: Apache-2.0

package sysmemory

import (
	"os"
	"syscall"
)

// Container returns the memory of the container, or 0 without a limit.
func Container() int64 { return container(os.ReadFile) }

// machine returns the memory of the machine.
func machine() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:gosec,unconvert // it fits; 32 bits on some machines
}
