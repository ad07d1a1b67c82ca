// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// rlimitData is RLIMIT_DATA of Linux: writable memory of the process, including mapped memory. Not
// all ports of package syscall have it under the same name.
const rlimitData = 2

// self returns this binary, even if its file was replaced.
func self() string { return "/proc/self/exe" }

// setGroup gives a process a group of its own. Signals of a terminal are for wasmctl run, which
// ends the process.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// enforce limits this process, and makes it the first to be killed if memory runs out.
func enforce(l Limits) error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) //nolint:gosec // the file exists
	if l.Memory > 0 {
		n := uint64(l.Memory)
		if err := syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	if l.Time > 0 {
		n := max(1, uint64(l.Time/time.Second))
		if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}

// Killed reports whether a process was ended by SIGKILL.
func Killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
