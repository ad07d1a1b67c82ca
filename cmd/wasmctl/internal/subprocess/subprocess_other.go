// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package subprocess

import (
	"os"
	"os/exec"
	"time"
)

// self returns this binary.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func setGroup(*exec.Cmd) {}

// LowerPriority does nothing: only Linux supports it here.
func LowerPriority(int) {}

// OnlyIdle returns false: only Linux supports it here.
func OnlyIdle(int) bool { return false }

// CPUTime returns false: only Linux supports it here.
func CPUTime(int) (time.Duration, bool) { return 0, false }

// Prepare does nothing: only Linux supports it here.
func Prepare() {}

// Start starts a process.
func Start(cmd *exec.Cmd) error { return cmd.Start() }

func enforce(Limits) error { return nil }

// Killed returns false: only Linux supports it here.
func Killed(*os.ProcessState) bool { return false }
