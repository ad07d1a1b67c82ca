// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"os"
	"os/exec"
	"strings"
	"sync"
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

// killedFirst is the oom_score_adj of processes that the system kills first if memory runs out.
const killedFirst = "1000"

// score is the oom_score_adj of this process. A child inherits it, and cannot change it itself,
// because a hardened process and its children can write to no file of /proc.
var score struct {
	once sync.Once
	file *os.File // nil if it cannot be opened
	own  string   // of this process

	mu sync.Mutex // locked while this process has the score of its child
}

// Prepare opens the files that Start needs. It must be called before the process is hardened.
func Prepare() {
	score.once.Do(func() {
		f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
		if err != nil {
			return
		}
		b := make([]byte, 8)
		n, err := f.Read(b)
		if score.own = strings.TrimSpace(string(b[:n])); err == nil {
			score.file = f
		}
	})
}

// Start starts a process, which is the first to be killed if memory runs out. This process has the
// same score for the milliseconds of the start.
func Start(cmd *exec.Cmd) error {
	Prepare()
	score.mu.Lock()
	defer score.mu.Unlock()
	if score.file != nil {
		_, _ = score.file.WriteAt([]byte(killedFirst), 0) // without it, the system decides
		defer func() { _, _ = score.file.WriteAt([]byte(score.own), 0) }()
	}
	return cmd.Start()
}

// enforce limits this process.
func enforce(l Limits) error {
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
